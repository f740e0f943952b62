//! The guard: a share in the running server. The last to leave stops it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::EmbeddedError;
use super::find::{Installation, Search};
use super::home::Home;
use super::lock::Lock;
use super::secrets::Secrets;
use super::state::{Answer, Endpoint, PidFile, knock};
use super::user::ServerUser;
use super::{EmbeddedSettings, initdb, launch};

/// How long a server may take to write its last checkpoint when it is stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);

/// A share in the server of a data directory, for as long as it lives.
///
/// Any number of processes hold one at once. [`Server::leave`] gives it up and stops the server if nobody else holds
/// one and nobody asked to keep it; dropping does the same without waiting for the server's end. A killed process
/// leaves the server running, and the next one adopts it.
#[derive(Debug)]
pub struct Server {
    pub(super) place: Place,
    pub(super) installation: Installation,
    pub(super) secrets: Secrets,
    pub(super) endpoint: Endpoint,
    pub(super) settings: EmbeddedSettings,
    share: Option<Lock>,
}

/// A data directory and its user: what is known of a server before it runs.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) home: Home,
    pub(crate) user: ServerUser,
}

impl Place {
    pub(crate) fn new(settings: &EmbeddedSettings) -> Result<Self, EmbeddedError> {
        let home = Home::new(settings.data_dir.as_deref())?;
        let user = ServerUser::choose(home.dir(), &home.pgdata())?;
        Ok(Self { home, user })
    }

    /// The endpoint of our running server, once it is no longer starting or stopping; `None` when nothing runs.
    ///
    /// Waits as long as the server takes, and says so: a recovery may take minutes.
    pub(crate) async fn running(
        &self,
        secrets: &Secrets,
    ) -> Result<Option<Endpoint>, EmbeddedError> {
        let pgdata = self.home.pgdata();
        let mut patience = Patience::new(self.home.log());
        loop {
            let Some(file) = PidFile::read(&pgdata)? else {
                return Ok(None);
            };
            if let Some(endpoint) = file
                .endpoint
                .as_ref()
                .filter(|_| file.phase == super::state::Phase::Ready)
            {
                match knock(&pgdata, &self.home.pgpass(), endpoint, &secrets.writer).await? {
                    Answer::Ours => return Ok(Some(endpoint.clone())),
                    Answer::NotNow => {}
                    Answer::Silence if file.is_alive(&pgdata) => {}
                    Answer::Silence => return Ok(None),
                }
            } else if !file.is_alive(&pgdata) {
                return Ok(None);
            }
            patience.wait().await;
        }
    }

    /// Stops the server and waits for its end. Nothing happens if it does not run.
    pub(crate) async fn stop(&self, installation: &Installation) -> Result<(), EmbeddedError> {
        if !self.is_alive() {
            return Ok(());
        }
        let timeout = STOP_TIMEOUT.as_secs().to_string();
        let program = installation.program("pg_ctl");
        let mut command = self.user.command(&program);
        command
            .args(["stop", "-s", "-w", "-m", "fast", "-t", &timeout, "-D"])
            .arg(self.home.pgdata());
        let output = tokio::process::Command::from(command)
            .output()
            .await
            .map_err(|source| initdb::not_run(&self.user, &program, source))?;
        if output.status.success() || !self.is_alive() {
            return Ok(());
        }
        Err(EmbeddedError::Stop {
            said: initdb::tail(&String::from_utf8_lossy(&output.stderr)),
        })
    }

    pub(super) fn is_alive(&self) -> bool {
        let pgdata = self.home.pgdata();
        PidFile::read(&pgdata)
            .ok()
            .flatten()
            .is_some_and(|file| file.is_alive(&pgdata))
    }
}

impl Server {
    /// Starts the server of the data directory, or adopts the one that runs; makes the database if there is none.
    ///
    /// # Errors
    /// See [`EmbeddedError`]; each says what to do where that is known.
    pub async fn start(settings: &EmbeddedSettings) -> Result<Self, EmbeddedError> {
        let place = Place::new(settings)?;
        place.home.create(&place.user)?;
        let gate = Lock::exclusive(&place.home.start_lock(), &place.user).await?;
        // Chosen again: another process may just have made the data, for another user.
        let place = Place::new(settings)?;
        let installation = Search::machine(settings.bin_dir.clone()).find(place.home.major()?)?;
        let share = Lock::shared(&place.home.use_lock(), &place.user).await?;
        if place.home.major()?.is_none() {
            let (home, user, installation) =
                (place.home.clone(), place.user.clone(), installation.clone());
            match tokio::task::spawn_blocking(move || initdb::create(&home, &user, &installation))
                .await
            {
                Ok(made) => made?,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        let secrets = Secrets::read(&place.home.pgpass())?;
        let server = match place.running(&secrets).await? {
            Some(endpoint) => {
                launch::shorten_log(&place.home)?;
                Server {
                    place,
                    installation,
                    secrets,
                    endpoint,
                    settings: settings.clone(),
                    share: Some(share),
                }
            }
            None => {
                remove_if_there(&place.home.keep_mark())?;
                let endpoint = Endpoint {
                    socket_folder: PathBuf::new(),
                    port: 0,
                };
                // Made before the launch, so that giving up in the middle of it stops what was begun.
                let mut server = Server {
                    place,
                    installation,
                    secrets,
                    endpoint,
                    settings: settings.clone(),
                    share: Some(share),
                };
                server.endpoint = launch::launch(
                    &server.place,
                    &server.installation,
                    &server.secrets,
                    settings,
                )
                .await?;
                server
            }
        };
        if settings.keep {
            server.keep()?;
        }
        drop(gate);
        Ok(server)
    }

    /// Marks the server as one that outlives its users, until [`stop`](super::stop).
    fn keep(&self) -> Result<(), EmbeddedError> {
        let mark = self.place.home.keep_mark();
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&mark)
            .map_err(EmbeddedError::io("creating", &mark))?;
        self.place.user.give(&mark)
    }

    /// The port on `127.0.0.1`.
    pub fn port(&self) -> u16 {
        self.endpoint.port
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        self.place.home.dir()
    }

    /// Major version of the server, e.g. 15.
    pub fn major(&self) -> u32 {
        self.installation.major
    }

    /// Gives up the share; the last one out stops the server, unless it is to be kept. Tells whether it was stopped.
    ///
    /// # Errors
    /// [`EmbeddedError::Stop`] when the server does not end within five minutes, or an error of the lock files.
    pub async fn leave(mut self) -> Result<bool, EmbeddedError> {
        let gate = Lock::exclusive(&self.place.home.start_lock(), &self.place.user).await?;
        drop(self.share.take());
        let last = Lock::try_exclusive(&self.place.home.use_lock(), &self.place.user)?;
        let stops = last.is_some() && !self.place.home.keep_mark().exists();
        if stops {
            self.place.stop(&self.installation).await?;
        }
        drop((last, gate));
        Ok(stops)
    }
}

impl Drop for Server {
    /// Without [`Server::leave`], i.e. on the way out of an error: tells the server to stop and does not wait for it.
    fn drop(&mut self) {
        if self.share.take().is_none() {
            return;
        }
        let Place { home, user } = &self.place;
        let last = Lock::try_exclusive(&home.use_lock(), user).ok().flatten();
        if last.is_some() && !home.keep_mark().exists() && self.place.is_alive() {
            let mut command = user.command(&self.installation.program("pg_ctl"));
            // Nobody is left to tell an error to, and the next start adopts a server that still runs.
            let _ = command
                .args(["stop", "-s", "-W", "-m", "fast", "-D"])
                .arg(home.pgdata())
                .status();
        }
    }
}

/// Removes a file that may be missing.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), EmbeddedError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("removing", path)(error))
        }
        _ => Ok(()),
    }
}

/// Waiting for a server that is busy with itself: short steps, and a word to the operator now and then.
#[derive(Debug)]
pub(crate) struct Patience {
    log: PathBuf,
    waited: Duration,
    next_word: Duration,
}

impl Patience {
    pub(crate) fn new(log: PathBuf) -> Self {
        Self {
            log,
            waited: Duration::ZERO,
            next_word: Duration::from_secs(2),
        }
    }

    pub(crate) async fn wait(&mut self) {
        let step = if self.waited < Duration::from_secs(1) {
            Duration::from_millis(10)
        } else {
            Duration::from_millis(100)
        };
        tokio::time::sleep(step).await;
        self.waited += step;
        if self.waited >= self.next_word {
            self.next_word += Duration::from_secs(10);
            let says = launch::log_tail(&self.log, 0)
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned();
            tracing::info!(waited_s = self.waited.as_secs(), %says, "waiting for the database server to come up or go down");
        }
    }
}
