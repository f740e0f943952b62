//! A certificate authority of a test's own, and servers with its certificates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test module uses a part of it")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::db::scratch_dir;

/// Signs certificates.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    dir: PathBuf,
}

/// A certificate with its key.
pub(crate) struct Signed {
    certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = rcgen::DnType::CommonName;
        // Two of one name would be taken for one whose signature is wrong.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let own_name = format!("authority {number} of a test");
        params.distinguished_name.push(name, own_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            dir: scratch_dir("authority"),
        }
    }

    /// A certificate for these names and addresses, valid from one year to another.
    pub(crate) fn sign(&self, names: &[&str], years: std::ops::Range<i32>) -> Signed {
        let (params, key) = leaf(names, years);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Signed {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key,
        }
    }

    /// A file with its own certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.write("ca.pem", &self.pem)
    }

    /// A file of its folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn leaf(names: &[&str], years: std::ops::Range<i32>) -> (CertificateParams, KeyPair) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    let name = rcgen::DnType::CommonName;
    params.distinguished_name.push(name, "a server of a test");
    params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
    (params, KeyPair::generate().unwrap())
}

impl Signed {
    /// One that nobody signed but itself.
    pub(crate) fn by_itself(names: &[&str]) -> Signed {
        let (params, key) = leaf(names, 2020..2120);
        let certificate = params.self_signed(&key).unwrap();
        Signed {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key,
        }
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Takes TLS connections with it; of an authority, if given, only those with a certificate of its own.
    pub(crate) fn acceptor(&self, clients: Option<&Authority>) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let (chain, key) = self.pair();
        let config = builder.with_single_cert(chain, key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Takes TLS connections with it that speak one of these protocols by ALPN.
    pub(crate) fn acceptor_of(&self, protocols: &[&str]) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (chain, key) = self.pair();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        TlsAcceptor::from(Arc::new(config))
    }

    fn pair(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        (vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(key))
    }
}

/// A server that sends bytes to whoever connects, at once or after a TLS handshake and a request.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn plain(bytes: &'static [u8]) -> Server {
        Server::start(None, bytes).await
    }

    pub(crate) async fn secure(acceptor: TlsAcceptor, bytes: &'static [u8]) -> Server {
        Server::start(Some(acceptor), bytes).await
    }

    async fn start(acceptor: Option<TlsAcceptor>, bytes: &'static [u8]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(acceptor) = &acceptor else {
                    let _ = stream.write_all(bytes).await;
                    // Closed before the hello was read, it would be reset.
                    let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await;
                    continue;
                };
                let Ok(stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
            }
        });
        Server { address, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
