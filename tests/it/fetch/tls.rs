//! HTTPS: whom we believe.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Self-signed for localhost and 127.0.0.1 until 2126, and trusted by nobody:
/// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500
/// -subj "/CN=pgcrawl test" -addext "subjectAltName=DNS:localhost,IP:127.0.0.1"`.
const CERTIFICATE: &[u8] = include_bytes!("tls/cert.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

/// A server that sends bytes to whoever connects, at once or after a TLS handshake and a request.
pub(super) struct Server {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Server {
    pub(super) async fn plain(bytes: &'static [u8]) -> Server {
        Server::start(None, bytes).await
    }

    async fn secure(bytes: &'static [u8]) -> Server {
        Server::start(Some(acceptor(&[])), bytes).await
    }
}

/// Accepts TLS connections that speak one of these protocols by ALPN.
pub(super) fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    TlsAcceptor::from(Arc::new(config))
}

impl Server {
    async fn start(acceptor: Option<TlsAcceptor>, bytes: &'static [u8]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(acceptor) = &acceptor else {
                    let _ = stream.write_all(bytes).await;
                    continue;
                };
                let Ok(stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    let read = tokio::io::AsyncBufReadExt::read_line(&mut stream, &mut line);
                    if read.await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
            }
        });
        Server { address, serving }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_never_tried_again_and_is_the_host_s_fault() {
    let server = Server::secure(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage").await;
    let error = fetch(&server.url()).await.unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("tls", Disposition::Never)
    );
    assert!(error.is_host_level());
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn insecure_takes_any_certificate() {
    let server = Server::secure(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage").await;
    let insecure = FetchSettings {
        insecure: true,
        ..settings()
    };
    let found = fetch_with(insecure, &server.url()).await.unwrap();
    assert_eq!(
        (found.body, found.ip),
        ("page".into(), Some(server.address.ip()))
    );
}

#[tokio::test]
async fn what_is_no_tls_behind_https_is_never_tried_again() {
    let server = Server::plain(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let error = fetch(&server.url()).await.unwrap_err();
    assert_eq!(
        (error.class(), error.disposition()),
        ("tls", Disposition::Never)
    );
}
