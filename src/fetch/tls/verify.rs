//! Whether a server's certificate will do.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use webpki::EndEntityCert;

/// Answers whether the certificates of a host (a name, or an address without brackets) go unverified.
pub(in crate::fetch) type Lenient = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The usual verification, but for hosts of which the operator said otherwise; and a certificate
/// that is signed by itself is told from one whose issuer is not known.
pub(super) struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    lenient: Lenient,
}

/// The mark of a certificate that is signed by itself.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("signed by itself")
    }
}

impl std::error::Error for SelfSigned {}

impl Verifier {
    pub(super) fn new(usual: Arc<WebPkiServerVerifier>, lenient: Lenient) -> Verifier {
        Verifier { usual, lenient }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if (self.lenient)(&server_name.to_str()) {
            return Ok(ServerCertVerified::assertion());
        }
        let verdict =
            self.usual
                .verify_server_cert(end_entity, intermediates, server_name, ocsp, now);
        match verdict {
            // One that calls itself an authority is refused as such, before its issuer is looked for.
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::Other(_),
            )) if is_self_signed(end_entity) => {
                let mark = OtherError(Arc::new(SelfSigned));
                Err(CertificateError::Other(mark).into())
            }
            verdict => verdict,
        }
    }

    // Signatures are checked whatever the host, which costs nothing.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate)
        .is_ok_and(|certificate| certificate.issuer() == certificate.subject())
}
