//! A pgbouncer in transaction mode before the tests' server.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::db::{TestDb, scratch_dir, server};

/// Ends with its standard input, that is with the test process, however that ends.
const KEEPER: &str = r#""$0" "$1" & read -r _; kill -9 $!"#;

/// A running pgbouncer.
pub(crate) struct Pooler {
    dir: PathBuf,
    program: PathBuf,
    port: u16,
    keeper: Option<Child>,
}

impl Pooler {
    /// Starts one with so many connections a database; `None` where the machine has no pgbouncer (`.ci/run` installs it).
    #[expect(clippy::print_stderr, reason = "who runs the tests hears of it")]
    pub(crate) async fn start(connections: u32, options: &str) -> Option<Pooler> {
        let program = [
            "/usr/sbin/pgbouncer",
            "/usr/bin/pgbouncer",
            "/usr/local/bin/pgbouncer",
        ]
        .map(PathBuf::from)
        .into_iter()
        .find(|program| program.exists());
        let Some(program) = program else {
            eprintln!("skipped: there is no pgbouncer here");
            return None;
        };
        let server = server().await;
        let target = parsed(&server.tcp_url("any"));
        let dir = scratch_dir("pooler");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|free| free.local_addr())
            .expect("a free port")
            .port();
        let at = dir.display();
        let config = format!(
            "[databases]
* = host=127.0.0.1 port={}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = md5
auth_file = {at}/users.txt
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
server_login_retry = 1
logfile = {at}/pgbouncer.log
{options}
",
            target.port().expect("it has one"),
        );
        let users = format!(
            "\"{}\" \"{}\"\n",
            target.username(),
            target.password().expect("it has one")
        );
        // It refuses to run as root, as the server does.
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).expect("our own");
        let (uid, gid) = owner_of(&server.data_dir().join("postgres"));
        std::os::unix::fs::chown(&dir, Some(uid), Some(gid)).expect("it can be given");
        for (name, text) in [("pgbouncer.ini", config), ("users.txt", users)] {
            let file = dir.join(name);
            std::fs::write(&file, text).expect("our own folder");
            std::os::unix::fs::chown(&file, Some(uid), Some(gid)).expect("it can be given");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
                .expect("our own");
        }
        let mut pooler = Pooler {
            dir,
            program,
            port,
            keeper: None,
        };
        pooler.run().await;
        Some(pooler)
    }

    /// Runs it, again after [`Pooler::kill`].
    pub(crate) async fn run(&mut self) {
        let (uid, gid) = owner_of(&self.dir);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", KEEPER])
            .arg(&self.program)
            .arg(self.dir.join("pgbouncer.ini"))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(uid).gid(gid);
        }
        self.keeper = Some(command.spawn().expect("there is a shell"));
        for _ in 0..500 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = std::fs::read_to_string(self.dir.join("pgbouncer.log"));
        panic!("pgbouncer does not come up: {log:?}");
    }

    /// Kills it, with all its connections.
    pub(crate) fn kill(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }

    /// The URL of a test's database through it.
    pub(crate) fn url(&self, db: &TestDb, server: &SecretString) -> SecretString {
        let mut url = parsed(server);
        url.set_port(Some(self.port)).expect("a port");
        url.set_path(&db.name);
        url.to_string().into()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.kill();
    }
}

fn parsed(url: &SecretString) -> Url {
    Url::parse(url.expose_secret()).expect("our own URL is one")
}

fn owner_of(path: &Path) -> (u32, u32) {
    let found = std::fs::metadata(path).expect("it is there");
    (found.uid(), found.gid())
}
