//! As whom a host sees us, as a fingerprint.

use http::header::{COOKIE, HeaderMap, HeaderValue};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use super::hosts::{HostSettings, Login};

/// Takes what is said to a host, piece by piece, each with its length before it.
#[derive(Default)]
pub(super) struct Guise(Sha256);

impl Guise {
    pub(super) fn text(mut self, name: &str, value: &[u8]) -> Guise {
        for part in [name.as_bytes(), value] {
            self.0.update((part.len() as u64).to_be_bytes());
            self.0.update(part);
        }
        self
    }

    pub(super) fn flag(self, is_set: bool) -> Guise {
        self.text("", &[u8::from(is_set)])
    }

    pub(super) fn header(self, name: &str, value: Option<&HeaderValue>) -> Guise {
        self.text(name, value.map_or(&b""[..], HeaderValue::as_bytes))
    }

    /// In the order of their names, since a map has none; the values of one name in theirs.
    pub(super) fn headers(mut self, headers: &HeaderMap) -> Guise {
        let mut names: Vec<_> = headers.keys().collect();
        names.sort_unstable_by_key(|name| name.as_str());
        for name in names {
            for value in headers.get_all(name) {
                self = self.header(name.as_str(), Some(value));
            }
        }
        self.flag(false)
    }

    /// What is said to this host alone, but its cookie.
    pub(super) fn said(self, said: Option<&HostSettings>) -> Guise {
        let Some(said) = said else {
            return self.flag(false);
        };
        let mut headers = said.headers.clone();
        headers.remove(COOKIE);
        let guise = self.headers(&headers);
        match &said.login {
            Some(Login::Basic { username, password }) => guise
                .text("basic", username.as_bytes())
                .text("", password.expose_secret().as_bytes()),
            Some(Login::Bearer(token)) => guise.text("bearer", token.expose_secret().as_bytes()),
            None => guise,
        }
    }

    pub(super) fn cut(self) -> u16 {
        let hash = self.0.finalize();
        u16::from_be_bytes([hash[0], hash[1]])
    }
}
