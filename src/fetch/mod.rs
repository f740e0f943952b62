//! Gets one resource over HTTP, and says exactly what happened.
//!
//! The one idea: every outcome is a value. An answer of any status is an [`Exchange`]; the absence
//! of one is a [`FetchError`] with a class from a closed set and a disposition for the retries.
//! What this room decides by itself is only what nobody above could: how long to wait, how much to
//! keep, which addresses never to touch.
//!
//! - **Time**: connecting, silence and the whole fetch have limits of their own, and errors of
//!   their own ([`FetchSettings`]).
//! - **Size**: the cap holds after decompression; a compressed bomb costs no more memory than a
//!   plain page.
//! - **Redirects** are results. Only a target with the very identity of its source is followed
//!   here, since nobody above could tell the two apart ([`PageUrl::digest`]).
//! - **Conditions**: what is known of the last visit goes along ([`Validators`]); a 304 that nobody
//!   asked for is an error, never a page.
//! - **Private addresses** are refused before each request and each hop: names when they resolve,
//!   IP literals before that ([`PrivateGuard`]).
//! - **Cookies** last for a visit, or in a host's jar where the operator wants that ([`KeepCookies`]).
//! - **Headers and logins of a host** are looked up for each request by its URL and never carried
//!   along ([`HostRules`]).
//! - **Proxies** come from the operator or from the environment, read by us; robots.txt takes the
//!   same way as the pages. One that fails rests while others take its place ([`Rotation`]).
//!
//! Scheduling, politeness, robots.txt rules and retries live elsewhere. reqwest is used here only.
//!
//! [`Exchange`]: crate::exchange::Exchange
//! [`PageUrl::digest`]: crate::canon::PageUrl::digest

mod address;
mod body;
mod client;
mod conditional;
mod cookies;
mod decode;
mod dns;
mod error;
// In tests too, so that it is compiled where nobody fuzzes.
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzz;
mod guise;
mod hosts;
mod idle;
mod own_headers;
mod proxy;
mod redirect;
mod resolve;
mod retry_after;
mod robots;
mod settings;
mod stream;
mod tls;
mod watch;

pub use address::{OwnHost, PrivateGuard, is_public};
pub use client::{Fetcher, Way};
pub use conditional::Validators;
pub use cookies::{Cookie, CookieFile, Jars, KeepCookies};
pub use error::{Disposition, FetchError, NameTrouble, Stage};
pub use hosts::{HostPattern, HostRules, HostSettings, Login, PatternError};
pub use own_headers::header_refusal;
pub use proxy::{Blame, ProxyChoice, ProxyEnvironment, ProxyReport, ProxyState, Rotation};
pub use resolve::HostAddresses;
pub use retry_after::retry_after;
pub use robots::{RobotsFetch, RobotsHop, RobotsHops};
pub use settings::{BodyRoom, FetchOptions, FetchSettings, HopLeave, MayHop, Resolver, TypeRules};
pub use stream::{Piece, Sink};
pub use tls::TlsFailure;
