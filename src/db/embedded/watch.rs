//! A server that dies under its users is started again in its place.
//!
//! Whoever holds a share may watch. What ended a server stands in its control file: one that was stopped, by the last user or by an operator,
//! says "shut down" and is left alone; one that was killed does not. Under the start lock one watcher starts it again, on the same port and the
//! same socket, and the others find it running; connections come back by themselves.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::error::EmbeddedError;
use super::find::Installation;
use super::lock::Lock;
use super::secrets::Secrets;
use super::server::{Place, Server};
use super::state::was_shut_down;
use super::{EmbeddedSettings, launch};

/// How often a watcher looks: at a file, and whether its process lives.
const EVERY: Duration = Duration::from_millis(500);

/// Longest wait after a start that failed.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A watch over the server, for as long as it lives. [`Watch::end`] it before the share is given up.
#[derive(Debug)]
pub struct Watch {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Watch {
    /// Ends the watch; a start under way is left to itself.
    pub async fn end(mut self) {
        self.stop.cancel();
        // An error would be a panic, which was printed.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Server {
    /// Watches over the server, and starts it again when it has died.
    pub fn watch(&self) -> Watch {
        let stop = CancellationToken::new();
        let watcher = Watcher {
            place: self.place.clone(),
            installation: self.installation.clone(),
            secrets: self.secrets.clone(),
            settings: EmbeddedSettings {
                // Its users know it by this one.
                port: Some(self.endpoint.port),
                ..self.settings.clone()
            },
        };
        let until = stop.clone();
        let task = tokio::spawn(async move {
            until.run_until_cancelled(watcher.run()).await;
        });
        Watch { stop, task }
    }
}

struct Watcher {
    place: Place,
    installation: Installation,
    secrets: Secrets,
    settings: EmbeddedSettings,
}

impl Watcher {
    async fn run(self) {
        let mut wait = EVERY;
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.look().await {
                Ok(()) => EVERY,
                Err(error) => {
                    let hint = error.hint().unwrap_or_default();
                    tracing::warn!(%error, hint, "the database server died and could not be started again; it is tried again");
                    (wait * 2).min(LONGEST_WAIT)
                }
            };
        }
    }

    async fn look(&self) -> Result<(), EmbeddedError> {
        let pgdata = self.place.home.pgdata();
        if self.place.is_alive() || was_shut_down(&pgdata)? {
            return Ok(());
        }
        let _gate = Lock::exclusive(&self.place.home.start_lock(), &self.place.user).await?;
        // Another watcher may have been quicker, or somebody has stopped it.
        if self.place.running(&self.secrets).await?.is_some() || was_shut_down(&pgdata)? {
            return Ok(());
        }
        tracing::warn!("the database server died; it is started again");
        launch::launch(
            &self.place,
            &self.installation,
            &self.secrets,
            &self.settings,
        )
        .await?;
        tracing::info!("the database server runs again");
        Ok(())
    }
}
