//! HTTPS: whom we believe.

use super::*;
use crate::support::authority::{Authority, Server, Signed};

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage";

/// Years in which all tests are run.
const VALID: std::ops::Range<i32> = 2020..2120;

fn trusting(authority: &Authority) -> FetchSettings {
    FetchSettings {
        ca_file: Some(authority.file()),
        ..settings()
    }
}

#[tokio::test]
async fn an_authority_of_the_operator_s_own_is_trusted_and_no_other() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = Server::secure(ours.sign(&["127.0.0.1"], VALID).acceptor(None), PAGE).await;
    let found = fetch_with(trusting(&ours), &good.url()).await.unwrap();
    assert_eq!((found.status, found.ip), (200, Some(good.address.ip())));
    for settings in [trusting(&theirs), settings()] {
        let error = fetch_with(settings, &good.url()).await.unwrap_err();
        assert_eq!(error.class(), "tls_unknown_issuer");
    }
}

#[tokio::test]
async fn each_certificate_that_does_not_verify_says_why_and_is_never_tried_again() {
    let authority = Authority::new();
    for (certificate, class, words) in [
        (
            authority.sign(&["127.0.0.1"], 2001..2002),
            "tls_expired",
            "tls: the certificate expired on 2002-01-01",
        ),
        (
            authority.sign(&["127.0.0.1"], 2118..2119),
            "tls_not_yet_valid",
            "tls: the certificate is not valid before 2118-01-01",
        ),
        (
            authority.sign(&["a.test", "*.b.test"], VALID),
            "tls_wrong_name",
            "tls: the certificate is for a.test, *.b.test, not for 127.0.0.1",
        ),
        (
            Authority::new().sign(&["127.0.0.1"], VALID),
            "tls_unknown_issuer",
            "tls: the certificate's issuer is not trusted",
        ),
        (
            Signed::by_itself(&["127.0.0.1"]),
            "tls_self_signed",
            "tls: the certificate is signed by itself",
        ),
    ] {
        let server = Server::secure(certificate.acceptor(None), PAGE).await;
        let error = fetch_with(trusting(&authority), &server.url())
            .await
            .unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            (class, Disposition::Never),
            "{error}"
        );
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(error.is_host_level());
        let insecure = FetchSettings {
            insecure: true,
            ..settings()
        };
        let found = fetch_with(insecure, &server.url()).await.unwrap();
        assert_eq!(found.body, "page");
    }
}

#[tokio::test]
async fn a_server_that_breaks_the_handshake_off_says_why_in_its_own_class() {
    // Alerts (RFC 8446 §6): 21, version, length, fatal, description.
    for (bytes, class) in [
        (&b"\x15\x03\x01\x00\x02\x02\x46"[..], "tls_version"),
        (&b"\x15\x03\x03\x00\x02\x02\x28"[..], "tls_handshake"),
        (&b"\x15\x03\x03\x00\x02\x02\x70"[..], "tls_handshake"),
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "tls_not_tls"),
    ] {
        let server = Server::plain(bytes).await;
        let error = fetch(&server.url()).await.unwrap_err();
        assert_eq!(
            (error.class(), error.disposition()),
            (class, Disposition::Never),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_is_shown_the_operator_s() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let acceptor = authority
        .sign(&["127.0.0.1"], VALID)
        .acceptor(Some(&authority));
    let server = Server::secure(acceptor, PAGE).await;
    let with = |by: &Authority, together: bool| {
        let mine = by.sign(&["me.test"], VALID);
        let settings = trusting(&authority);
        if together {
            let both = mine.pem.clone() + &mine.key_pem();
            return FetchSettings {
                client_cert: Some(by.write("both.pem", &both)),
                ..settings
            };
        }
        FetchSettings {
            client_cert: Some(by.write("me.pem", &mine.pem)),
            client_key: Some(by.write("me.key", &mine.key_pem())),
            ..settings
        }
    };
    for together in [false, true] {
        let found = fetch_with(with(&authority, together), &server.url()).await;
        assert_eq!(found.unwrap().body, "page");
    }
    for settings in [trusting(&authority), with(&stranger, false)] {
        let error = fetch_with(settings, &server.url()).await.unwrap_err();
        assert_eq!(error.class(), "tls_client_certificate", "{error}");
    }
}

#[tokio::test]
async fn a_file_that_holds_no_certificate_is_named_with_its_key() {
    let authority = Authority::new();
    let empty = authority.write("empty.pem", "nothing\n");
    let complaint = |settings: FetchSettings| {
        let built = Fetcher::new(settings, PrivateGuard::closed());
        built.unwrap_err().to_string()
    };
    let said = complaint(FetchSettings {
        ca_file: Some(empty.clone()),
        ..settings()
    });
    assert!(said.starts_with("fetch.ca_file: "), "{said}");
    assert!(
        said.ends_with("empty.pem holds no certificate in PEM form (-----BEGIN …)"),
        "{said}"
    );
    let said = complaint(FetchSettings {
        ca_file: Some("/nowhere/ca.pem".into()),
        ..settings()
    });
    assert!(
        said.starts_with("fetch.ca_file: cannot read /nowhere/ca.pem: "),
        "{said}"
    );
    let said = complaint(FetchSettings {
        client_cert: Some(authority.file()),
        ..settings()
    });
    assert!(said.starts_with("fetch.client_cert: "), "{said}");
    assert!(said.contains("holds no private key"), "{said}");
    let mine = authority.sign(&["me.test"], VALID);
    let other = authority.sign(&["me.test"], VALID);
    let said = complaint(FetchSettings {
        client_cert: Some(authority.write("me.pem", &mine.pem)),
        client_key: Some(authority.write("other.key", &other.key_pem())),
        ..settings()
    });
    assert!(said.contains("and its key cannot be used"), "{said}");
}
