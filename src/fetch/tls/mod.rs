//! Whom we trust: the system's roots and Mozilla's, merged, and those that the operator adds.
//!
//! A container often has no CA file at all, and the platform's verifier then builds no client; the
//! compiled-in roots make it work there, the system's (or those of `SSL_CERT_FILE` and
//! `SSL_CERT_DIR`) add those of the operator. One provider, ring, serves the whole program (sqlx
//! uses it too).

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use self::verify::Verifier;
use super::{FetchError, FetchSettings};

mod failure;
mod verify;

pub use failure::TlsFailure;
pub(super) use verify::Lenient;

/// The TLS side of a client: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1 by ALPN. Certificates of the
/// hosts that `lenient` names go unverified.
///
/// # Errors
/// [`FetchError::Setting`] if a file cannot be read or holds something else; it names the key.
pub(super) fn config(
    settings: &FetchSettings,
    lenient: Lenient,
) -> Result<ClientConfig, FetchError> {
    let provider = Arc::new(ring::default_provider());
    let roots = roots(settings.ca_file.as_deref())?;
    let usual = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(|error| wrong("tls", error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("tls", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier::new(usual, lenient)));
    let mut config = match &settings.client_cert {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let key_file = settings.client_key.as_ref().unwrap_or(file);
            let key_name = match settings.client_key {
                Some(_) => "fetch.client_key",
                None => "fetch.client_cert",
            };
            let chain = certificates("fetch.client_cert", file)?;
            let key = PrivateKeyDer::from_pem_file(key_file)
                .map_err(|error| unreadable(key_name, key_file, "private key", &error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                let file = file.display();
                wrong(
                    "fetch.client_cert",
                    format!("{file} and its key cannot be used: {error}"),
                )
            })?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn wrong(key: &'static str, reason: String) -> FetchError {
    FetchError::Setting { key, reason }
}

fn unreadable(
    key: &'static str,
    file: &Path,
    what: &str,
    error: &rustls::pki_types::pem::Error,
) -> FetchError {
    use rustls::pki_types::pem::Error as E;
    let file = file.display();
    wrong(
        key,
        match error {
            E::NoItemsFound => format!("{file} holds no {what} in PEM form (-----BEGIN …)"),
            E::Io(error) => format!("cannot read {file}: {error}"),
            other => format!("{file} is no {what} in PEM form: {other}"),
        },
    )
}

/// All certificates of a PEM file; never none.
fn certificates(
    key: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, FetchError> {
    let unreadable = |error| unreadable(key, file, "certificate", &error);
    let found = CertificateDer::pem_file_iter(file)
        .map_err(unreadable)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(unreadable)?;
    match found.is_empty() {
        true => Err(unreadable(rustls::pki_types::pem::Error::NoItemsFound)),
        false => Ok(found),
    }
}

/// The common roots, with those of `ca_file`.
fn roots(ca_file: Option<&Path>) -> Result<Arc<RootCertStore>, FetchError> {
    let Some(file) = ca_file else {
        return Ok(common_roots());
    };
    const KEY: &str = "fetch.ca_file";
    let mut store = RootCertStore::clone(&common_roots());
    for certificate in certificates(KEY, file)? {
        store.add(certificate).map_err(|error| {
            wrong(
                KEY,
                format!(
                    "{} holds a certificate that cannot be used: {error}",
                    file.display()
                ),
            )
        })?;
    }
    Ok(Arc::new(store))
}

/// Read once: some systems hold hundreds of files.
fn common_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut store = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::debug!(%error, "could not read some of the system's certificates");
        }
        let (added, ignored) = store.add_parsable_certificates(native.certs);
        tracing::debug!(added, ignored, "merged the system's root certificates");
        Arc::new(store)
    });
    Arc::clone(roots)
}
