//! What a failed handshake means, as a class and a plain sentence.

use chrono::{DateTime, Utc};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible,
};

use super::verify::SelfSigned;

/// Why there is no TLS connection. None of it is worth another try: the same handshake fails the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFailure {
    /// The certificate is valid no more.
    Expired,
    /// The certificate is not valid yet, or our clock is wrong.
    NotYetValid,
    /// The certificate is for other names.
    WrongName,
    /// No authority that we trust has signed the certificate, or the server leaves out one in between.
    UnknownIssuer,
    /// The certificate is signed by itself.
    SelfSigned,
    /// The certificate was revoked.
    Revoked,
    /// The certificate is no good for another reason: its form, its signature, its purpose.
    Certificate,
    /// Neither TLS 1.2 nor 1.3.
    Version,
    /// No common ground for another reason, or the server refused.
    Handshake,
    /// The server wants a certificate of ours, or another one.
    ClientCertificate,
    /// What answers does not speak TLS: plain HTTP on the port of HTTPS, most often.
    NotTls,
    /// Anything else.
    Other,
}

impl TlsFailure {
    /// The error's class.
    pub fn class(self) -> &'static str {
        match self {
            TlsFailure::Expired => "tls_expired",
            TlsFailure::NotYetValid => "tls_not_yet_valid",
            TlsFailure::WrongName => "tls_wrong_name",
            TlsFailure::UnknownIssuer => "tls_unknown_issuer",
            TlsFailure::SelfSigned => "tls_self_signed",
            TlsFailure::Revoked => "tls_revoked",
            TlsFailure::Certificate => "tls_certificate",
            TlsFailure::Version => "tls_version",
            TlsFailure::Handshake => "tls_handshake",
            TlsFailure::ClientCertificate => "tls_client_certificate",
            TlsFailure::NotTls => "tls_not_tls",
            TlsFailure::Other => "tls",
        }
    }

    /// What rustls says, as a class and a sentence.
    pub(in crate::fetch) fn of(error: &Error) -> (TlsFailure, String) {
        match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            Error::AlertReceived(alert) => of_alert(*alert),
            Error::PeerIncompatible(reason) => of_peer(reason),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                let words = "what answers on this port does not speak tls";
                (TlsFailure::NotTls, words.to_owned())
            }
            Error::NoCertificatesPresented => {
                let words = "the server shows no certificate";
                (TlsFailure::Certificate, words.to_owned())
            }
            other => (TlsFailure::Other, other.to_string()),
        }
    }
}

fn of_certificate(error: &CertificateError) -> (TlsFailure, String) {
    use CertificateError as E;
    let said = |failure, words: &str| (failure, words.to_owned());
    match error {
        E::Expired => said(TlsFailure::Expired, "the certificate has expired"),
        E::ExpiredContext { not_after, .. } => {
            let words = format!("the certificate expired on {}", date(*not_after));
            (TlsFailure::Expired, words)
        }
        E::NotValidYet => said(TlsFailure::NotYetValid, "the certificate is not valid yet"),
        E::NotValidYetContext { not_before, .. } => {
            let words = format!("the certificate is not valid before {}", date(*not_before));
            (TlsFailure::NotYetValid, words)
        }
        E::NotValidForName => said(TlsFailure::WrongName, "the certificate is for another name"),
        E::NotValidForNameContext {
            expected,
            presented,
        } => (TlsFailure::WrongName, wrong_name(expected, presented)),
        E::UnknownIssuer => {
            let words = "the certificate's issuer is not trusted, or the server leaves out a certificate in between";
            said(TlsFailure::UnknownIssuer, words)
        }
        E::Revoked => said(TlsFailure::Revoked, "the certificate was revoked"),
        E::Other(OtherError(inner)) if inner.is::<SelfSigned>() => {
            let words = "the certificate is signed by itself, so nobody vouches for it";
            said(TlsFailure::SelfSigned, words)
        }
        other => (
            TlsFailure::Certificate,
            format!("the certificate is no good: {other}"),
        ),
    }
}

fn wrong_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    /// Some certificates hold hundreds.
    const SHOWN: usize = 5;
    // Presented as `DnsName("a.test")`.
    let mut names: Vec<&str> = presented
        .iter()
        .map(|name| name.split('"').nth(1).unwrap_or(name))
        .take(SHOWN)
        .collect();
    if presented.len() > SHOWN {
        names.push("…");
    }
    let expected = expected.to_str();
    match names.is_empty() {
        true => format!("the certificate is for no name at all, not for {expected}"),
        false => format!(
            "the certificate is for {}, not for {expected}",
            names.join(", ")
        ),
    }
}

fn of_alert(alert: AlertDescription) -> (TlsFailure, String) {
    use AlertDescription as A;
    let name = format!("{alert:?}");
    match alert {
        A::ProtocolVersion => {
            let words = "the server wants another version of tls than 1.2 and 1.3";
            (TlsFailure::Version, words.to_owned())
        }
        A::CertificateRequired => {
            let words = "the server wants a certificate of the client (fetch.client_cert)";
            (TlsFailure::ClientCertificate, words.to_owned())
        }
        A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::CertificateExpired
        | A::CertificateUnknown
        | A::UnknownCA
        | A::AccessDenied => {
            let words = format!("the server does not take the client's certificate ({name})");
            (TlsFailure::ClientCertificate, words)
        }
        A::UnrecognisedName => {
            let words = "the server does not know this name";
            (TlsFailure::Handshake, words.to_owned())
        }
        _ => {
            let words = format!("the server broke the handshake off ({name})");
            (TlsFailure::Handshake, words)
        }
    }
}

fn of_peer(reason: &PeerIncompatible) -> (TlsFailure, String) {
    use PeerIncompatible as P;
    match reason {
        P::ServerDoesNotSupportTls12Or13 | P::ServerTlsVersionIsDisabledByOurConfig => {
            let words = "the server speaks neither tls 1.2 nor 1.3";
            (TlsFailure::Version, words.to_owned())
        }
        other => {
            let words = format!("no common ground with the server ({other:?})");
            (TlsFailure::Handshake, words)
        }
    }
}

fn date(time: UnixTime) -> String {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0))
        .map_or_else(
            || "a day out of reach".to_owned(),
            |at| at.date_naive().to_string(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_and_incompatible_servers_have_their_classes() {
        for (error, failure) in [
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                TlsFailure::Version,
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                TlsFailure::Handshake,
            ),
            (
                Error::AlertReceived(AlertDescription::UnknownCA),
                TlsFailure::ClientCertificate,
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                TlsFailure::Version,
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                TlsFailure::Handshake,
            ),
            (
                Error::InvalidCertificate(CertificateError::Revoked),
                TlsFailure::Revoked,
            ),
            (
                Error::InvalidCertificate(CertificateError::BadEncoding),
                TlsFailure::Certificate,
            ),
            (Error::NoCertificatesPresented, TlsFailure::Certificate),
            (Error::General("x".into()), TlsFailure::Other),
        ] {
            assert_eq!(TlsFailure::of(&error).0, failure, "{error}");
        }
    }

    #[test]
    fn a_certificate_of_many_names_is_not_listed_whole() {
        let presented: Vec<String> = (0..300)
            .map(|n| format!("DnsName(\"n{n}.test\")"))
            .collect();
        let expected = ServerName::try_from("a.test").unwrap();
        let words = wrong_name(&expected, &presented);
        assert_eq!(
            words,
            "the certificate is for n0.test, n1.test, n2.test, n3.test, n4.test, …, not for a.test"
        );
    }
}
