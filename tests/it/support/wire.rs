//! A wire to the database that can be cut, at any time or in the middle of a chosen statement, and that can go silent.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use super::db::TestDb;

/// Where in a statement's course the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server never hears of it.
    BeforeSent,
    /// The server has done it, and its answer is lost.
    BeforeAnswered,
    /// The server has done it; neither its answer comes nor a hang-up.
    Silent,
}

/// What passes at present.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Connections of a lower number end.
    cut_below: u64,
    /// Connections of a lower number stay open, and nothing passes.
    silent_below: u64,
    /// New connections are refused.
    dead: bool,
}

struct Shared {
    state: watch::Sender<State>,
    armed: Mutex<Option<(String, Cut)>>,
    /// Connections so far.
    connections: AtomicU64,
}

/// Forwards connections to a database for as long as it is whole.
pub(crate) struct Wire {
    address: SocketAddr,
    shared: Arc<Shared>,
    url: String,
}

impl Wire {
    /// Lays a wire to the database of a test.
    pub(crate) async fn to(db: &TestDb) -> Wire {
        let server = super::db::server().await;
        Wire::to_url(&server.tcp_url(db.name.trim_start_matches("crawl_"))).await
    }

    /// Lays a wire to the server of a URL with a TCP address.
    pub(crate) async fn to_url(url: &SecretString) -> Wire {
        let url = url.expose_secret().to_owned();
        let options: PgConnectOptions = url.parse().expect("our own URL is one");
        let target = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            state: watch::Sender::new(State {
                cut_below: 0,
                silent_below: 0,
                dead: false,
            }),
            armed: Mutex::new(None),
            connections: AtomicU64::new(0),
        });
        let wire = Wire {
            address,
            shared: Arc::clone(&shared),
            url,
        };
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if shared.state.borrow().dead {
                    continue;
                }
                let Ok(far) = TcpStream::connect(&target).await else {
                    continue;
                };
                let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(carry(number, near, far, Arc::clone(&shared)));
            }
        });
        wire
    }

    /// The database's URL through the wire.
    pub(crate) fn url(&self) -> String {
        let mut url = url::Url::parse(&self.url).expect("a URL");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(self.address.port())).expect("a port");
        url.to_string()
    }

    /// How many connections it has carried so far.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Cuts all connections; new ones are taken.
    pub(crate) fn cut(&self) {
        self.change(|state| state.cut_below = u64::MAX);
        self.change(|state| state.cut_below = 0);
    }

    /// Cuts all connections and takes no new ones.
    pub(crate) fn kill(&self) {
        self.change(|state| {
            state.dead = true;
            state.cut_below = u64::MAX;
        });
    }

    /// Carries new connections again.
    pub(crate) fn mend(&self) {
        self.change(|state| {
            *state = State {
                cut_below: 0,
                silent_below: 0,
                dead: false,
            }
        });
    }

    /// Lets the present connections stand open with nothing passing; new ones are carried.
    pub(crate) fn silence(&self) {
        let present = self.shared.connections.load(Ordering::Relaxed);
        self.change(|state| state.silent_below = present);
    }

    /// The same with the new ones.
    pub(crate) fn silence_all(&self) {
        self.change(|state| state.silent_below = u64::MAX);
    }

    /// Cuts the connection that next executes exactly this statement, in the middle of it. Once.
    pub(crate) fn arm(&self, sql: &str, cut: Cut) {
        *self.shared.armed.lock().expect("nobody panics with it") = Some((sql.to_owned(), cut));
    }

    /// Whether an armed cut is still to come.
    pub(crate) fn is_armed(&self) -> bool {
        self.shared
            .armed
            .lock()
            .expect("nobody panics with it")
            .is_some()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.shared.state.send_modify(change);
    }
}

/// Carries one connection until it ends or is cut.
async fn carry(number: u64, near: TcpStream, far: TcpStream, shared: Arc<Shared>) {
    // Messages go one by one; a delayed acknowledgement would hold up each statement for 40 ms.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let swallow = Arc::new(Mutex::new(None));
    let mut cut = shared.state.subscribe();
    tokio::select! {
        biased;
        _ = cut.wait_for(|state| number < state.cut_below) => {}
        _ = forth(number, near_in, far_out, &shared, &swallow) => {}
        _ = back(number, far_in, near_out, &shared, &swallow) => {}
    }
}

/// Waits while the connection is silent. What was once silent stays so until the wire is mended.
async fn audible(number: u64, shared: &Shared) {
    let mut state = shared.state.subscribe();
    let _ = state.wait_for(|state| number >= state.silent_below).await;
}

/// Whom to tell that the server has answered, while its answers are swallowed.
type Swallow = Mutex<Option<oneshot::Sender<()>>>;

/// From the client to the server, message by message.
async fn forth(
    number: u64,
    mut near: OwnedReadHalf,
    mut far: OwnedWriteHalf,
    shared: &Shared,
    swallow: &Swallow,
) -> std::io::Result<()> {
    const PROTOCOL: [u8; 4] = [0, 3, 0, 0];
    let mut statements: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut bound = Vec::new();
    let mut answered = None;
    // Before the start-up message there may be a request for TLS; neither has a type.
    loop {
        let message = message(&mut near, Vec::new()).await?;
        audible(number, shared).await;
        far.write_all(&message).await?;
        if message[4..].starts_with(&PROTOCOL) {
            break;
        }
    }
    loop {
        let kind = near.read_u8().await?;
        let message = message(&mut near, vec![kind]).await?;
        audible(number, shared).await;
        let mut words = message[5..].split(|byte| *byte == 0);
        let mut word = || words.next().unwrap_or_default().to_vec();
        match kind {
            b'P' => {
                let name = word();
                statements.insert(name, word());
            }
            b'B' => {
                word();
                bound = statements.get(&word()).cloned().unwrap_or_default();
            }
            b'E' => match take_armed(shared, &bound) {
                Some(Cut::BeforeSent) => return Ok(()),
                Some(cut) => {
                    let (tell, told) = oneshot::channel();
                    *swallow.lock().expect("nobody panics with it") = Some(tell);
                    answered = Some((told, cut));
                }
                None => {}
            },
            _ => {}
        }
        far.write_all(&message).await?;
        if kind == b'S'
            && let Some((answered, cut)) = answered.take()
        {
            let _ = answered.await;
            if cut == Cut::Silent {
                std::future::pending::<()>().await;
            }
            return Ok(());
        }
    }
}

/// Reads what is left of a message of which `head` was read: its length, then its body.
async fn message(from: &mut OwnedReadHalf, head: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    let mut message = head;
    message.extend(length.to_be_bytes());
    let begin = message.len();
    message.resize(begin + length as usize - 4, 0);
    from.read_exact(&mut message[begin..]).await?;
    Ok(message)
}

fn take_armed(shared: &Shared, bound: &[u8]) -> Option<Cut> {
    let mut armed = shared.armed.lock().expect("nobody panics with it");
    let (_, cut) = armed.take_if(|(sql, _)| sql.as_bytes() == bound)?;
    Some(cut)
}

/// From the server to the client, as it comes.
async fn back(
    number: u64,
    mut far: OwnedReadHalf,
    mut near: OwnedWriteHalf,
    shared: &Shared,
    swallow: &Swallow,
) -> std::io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    let mut swallowed = Vec::new();
    loop {
        let n = far.read(&mut chunk).await?;
        if n == 0 {
            return Ok(());
        }
        audible(number, shared).await;
        let mut swallow = swallow.lock().expect("nobody panics with it").take();
        if swallow.is_none() {
            near.write_all(&chunk[..n]).await?;
            continue;
        }
        // Nothing was on its way when the swallowing began, so messages begin where it begins. Until the server is ready again.
        swallowed.extend_from_slice(&chunk[..n]);
        while !is_ready(&swallowed) {
            let n = far.read(&mut chunk).await?;
            if n == 0 {
                break;
            }
            swallowed.extend_from_slice(&chunk[..n]);
        }
        if let Some(tell) = swallow.take() {
            let _ = tell.send(());
        }
        return std::future::pending().await;
    }
}

/// Whether ReadyForQuery is among these messages of the server.
fn is_ready(mut bytes: &[u8]) -> bool {
    while let [kind, a, b, c, d, ..] = *bytes {
        let whole = 1 + u32::from_be_bytes([a, b, c, d]) as usize;
        if bytes.len() < whole {
            return false;
        }
        if kind == b'Z' {
            return true;
        }
        bytes = &bytes[whole..];
    }
    false
}
