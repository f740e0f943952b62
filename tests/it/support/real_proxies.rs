//! Proxies that others wrote: tinyproxy for HTTP, microsocks for SOCKS.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;

use super::db::scratch_dir;

/// Ends with its standard input, that is with the test process, however that ends; and not before the proxy, which might else take one
/// more connection.
const KEEPER: &str = r#""$@" & read -r _; kill -9 $!; wait"#;

/// The credentials that each of them wants.
pub(crate) const USER: &str = "me";
/// The same.
pub(crate) const PASSWORD: &str = "hunter2";

/// A proxy of its own process.
pub(crate) struct RealProxy {
    command: Vec<String>,
    scheme: &'static str,
    port: u16,
    keeper: Option<Child>,
}

impl RealProxy {
    /// A tinyproxy; `None` where the machine has none (`.ci/run` installs it).
    pub(crate) async fn http() -> Option<RealProxy> {
        let mut proxy = RealProxy::stopped_http()?;
        proxy.run().await;
        Some(proxy)
    }

    /// The same, not yet running.
    pub(crate) fn stopped_http() -> Option<RealProxy> {
        let program = program("tinyproxy")?;
        let (dir, port) = (scratch_dir("tinyproxy"), free_port());
        let config = dir.join("tinyproxy.conf");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 50\nLogLevel Error\nLogFile \"{}\"\nBasicAuth {USER} {PASSWORD}\n",
            dir.join("log").display()
        );
        std::fs::write(&config, text).expect("our own folder");
        let config = config.display().to_string();
        Some(RealProxy {
            command: vec![program, "-d".to_owned(), "-c".to_owned(), config],
            scheme: "http",
            port,
            keeper: None,
        })
    }

    /// A microsocks; `None` where the machine has none (`.ci/run` installs it).
    pub(crate) async fn socks() -> Option<RealProxy> {
        let (program, port) = (program("microsocks")?, free_port());
        let port_text = port.to_string();
        let arguments = [
            "-i",
            "127.0.0.1",
            "-p",
            &port_text,
            "-u",
            USER,
            "-P",
            PASSWORD,
        ];
        let command = std::iter::once(program).chain(arguments.map(str::to_owned));
        let mut proxy = RealProxy {
            command: command.collect(),
            scheme: "socks5h",
            port,
            keeper: None,
        };
        proxy.run().await;
        Some(proxy)
    }

    /// Runs it, again after [`RealProxy::kill`].
    pub(crate) async fn run(&mut self) {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", KEEPER, "sh"])
            .args(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.keeper = Some(command.spawn().expect("there is a shell"));
        for _ in 0..500 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} does not come up", self.command[0]);
    }

    /// Kills it, with all its connections.
    pub(crate) fn kill(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }

    /// `label=URL` with its credentials.
    pub(crate) fn named(&self, label: &str) -> String {
        self.with(label, self.scheme, PASSWORD)
    }

    /// The same with another scheme or password.
    pub(crate) fn with(&self, label: &str, scheme: &str, password: &str) -> String {
        format!(
            "{label}={scheme}://{USER}:{password}@127.0.0.1:{}",
            self.port
        )
    }

    /// Takes TLS connections for it; the port at which it does, until the runtime ends.
    pub(crate) async fn behind_tls(&self, acceptor: TlsAcceptor) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let (outer, inner) = (listener.local_addr().expect("it listens").port(), self.port);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(stream).await else {
                        return;
                    };
                    let connecting = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, inner));
                    if let Ok(mut inside) = connecting.await {
                        let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                    }
                });
            }
        });
        outer
    }
}

impl Drop for RealProxy {
    fn drop(&mut self) {
        self.kill();
    }
}

#[expect(clippy::print_stderr, reason = "who runs the tests hears of it")]
fn program(name: &str) -> Option<String> {
    let found = ["/usr/bin", "/usr/sbin", "/usr/local/bin"]
        .map(|dir| PathBuf::from(dir).join(name))
        .into_iter()
        .find(|program| program.exists());
    if found.is_none() {
        eprintln!("skipped: there is no {name} here");
    }
    found.map(|program| program.display().to_string())
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|free| free.local_addr())
        .expect("a free port")
        .port()
}
