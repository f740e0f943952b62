//! Looking at a server without taking a share in it, and stopping it.

use std::path::PathBuf;

use super::EmbeddedSettings;
use super::error::EmbeddedError;
use super::find::Search;
use super::lock::Lock;
use super::secrets::Secrets;
use super::server::{Place, remove_if_there};

/// What there is in a data directory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Major version of the data; `None` if there are none yet.
    pub major: Option<u32>,
    /// The server, if it runs and has shown that it is this directory's.
    pub running: Option<Running>,
    /// Its log.
    pub log: PathBuf,
}

/// A running server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Running {
    /// The port on `127.0.0.1`.
    pub port: u16,
    /// The folder of its socket.
    pub socket_folder: PathBuf,
    /// Some pgcrawl process holds a share.
    pub in_use: bool,
    /// It stays when the last share is given up.
    pub kept: bool,
}

/// Whether [`stop`] may take the server away from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Refuse while somebody uses it.
    IfUnused,
    /// Stop it under its users.
    Force,
}

/// Looks at a data directory and its server. Waits while that starts or stops.
///
/// # Errors
/// A folder that cannot be read, or a server that answers and is not this directory's.
pub async fn status(settings: &EmbeddedSettings) -> Result<Status, EmbeddedError> {
    let place = Place::new(settings)?;
    let home = &place.home;
    let major = home.major()?;
    let endpoint = match major {
        Some(_) => place.running(&Secrets::read(&home.pgpass())?).await?,
        None => None,
    };
    let running = match endpoint {
        Some(endpoint) => Some(Running {
            port: endpoint.port,
            socket_folder: endpoint.socket_folder,
            in_use: Lock::try_exclusive(&home.use_lock(), &place.user)?.is_none(),
            kept: home.keep_mark().exists(),
        }),
        None => None,
    };
    Ok(Status {
        data_dir: home.dir().to_owned(),
        major,
        running,
        log: home.log(),
    })
}

/// Stops the server of a data directory, also a kept one. Tells whether it ran.
///
/// # Errors
/// [`EmbeddedError::InUse`] with [`StopMode::IfUnused`], [`EmbeddedError::Stop`] if it does not end in five minutes.
pub async fn stop(settings: &EmbeddedSettings, mode: StopMode) -> Result<bool, EmbeddedError> {
    let place = Place::new(settings)?;
    let Some(major) = place.home.major()? else {
        return Ok(false);
    };
    let _gate = Lock::exclusive(&place.home.start_lock(), &place.user).await?;
    let alone = Lock::try_exclusive(&place.home.use_lock(), &place.user)?;
    if alone.is_none() && mode == StopMode::IfUnused {
        return Err(EmbeddedError::InUse {
            path: place.home.dir().to_owned(),
        });
    }
    remove_if_there(&place.home.keep_mark())?;
    if place
        .running(&Secrets::read(&place.home.pgpass())?)
        .await?
        .is_none()
    {
        return Ok(false);
    }
    let installation = Search::machine(settings.bin_dir.clone()).find(Some(major))?;
    place.stop(&installation).await?;
    Ok(true)
}
