//! A wire to the database that can be cut.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::net::SocketAddr;
use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::db::TestDb;

/// Forwards connections to a test's database for as long as it is whole.
pub(crate) struct Wire {
    address: SocketAddr,
    /// Grows with each cut; connections of an earlier value end. `None`: the wire is dead, and new connections end too.
    state: Arc<watch::Sender<Option<u32>>>,
    url: String,
}

impl Wire {
    /// Lays a wire to the database of a test.
    pub(crate) async fn to(db: &TestDb) -> Wire {
        let url = secrecy::ExposeSecret::expose_secret(
            &super::db::server()
                .await
                .tcp_url(db.name.trim_start_matches("crawl_")),
        )
        .to_owned();
        let options: PgConnectOptions = url.parse().expect("our own URL is one");
        let target = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(watch::Sender::new(Some(0)));
        let cuts = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let mut cut = cuts.subscribe();
                if cut.borrow_and_update().is_none() {
                    continue;
                }
                let Ok(far) = TcpStream::connect(&target).await else {
                    continue;
                };
                tokio::spawn(async move {
                    let (mut near, mut far) = (near, far);
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Wire {
            address,
            state,
            url,
        }
    }

    /// The database's URL through the wire.
    pub(crate) fn url(&self) -> String {
        let mut url = url::Url::parse(&self.url).expect("a URL");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(self.address.port())).expect("a port");
        url.to_string()
    }

    /// Cuts all connections; new ones are taken.
    pub(crate) fn cut(&self) {
        self.state
            .send_modify(|state| *state = state.map(|n| n + 1));
    }

    /// Cuts all connections and takes no new ones.
    pub(crate) fn kill(&self) {
        self.state.send_replace(None);
    }
}
