//! What an operator may set about fetching, and what a visit may ask for.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use url::Url;

use super::conditional::Validators;
use super::cookies::{Cookie, Jars, KeepCookies};
use super::hosts::HostRules;
use super::proxy::{ProxyEnvironment, Rotation, default_rests, without_credentials};
use super::stream::Sink;
use super::{HostAddresses, OwnHost};
use crate::canon::Canon;

/// How resources are fetched; shared by all visits of a process.
#[derive(Clone)]
pub struct FetchSettings {
    /// The `User-Agent` header. Default `pgcrawl/` and the version.
    pub user_agent: String,
    /// The `From` header: a mail address of the operator. Default none.
    pub from: Option<String>,
    /// The `Accept` header.
    pub accept: String,
    /// The longest time for name lookup, connection and TLS handshake together. Default 10 s.
    pub connect_timeout: Duration,
    /// The longest silence: before the headers (counted from the end of `connect_timeout`) and
    /// between two pieces of the body. Default 20 s.
    pub idle_timeout: Duration,
    /// The longest time for a whole fetch with its hops. Default 60 s.
    pub total_timeout: Duration,
    /// Bytes of a body that are kept, after content coding, and read, before it. Default 10 MiB.
    pub max_body_bytes: u64,
    /// `URL` or `label=URL` of each proxy that takes its turn: `http`, `https`, `socks5` (names are
    /// resolved here) or `socks5h` (by the proxy), with credentials if need be. Default none.
    pub proxies: Vec<String>,
    /// The same for those that only entries of `hosts` name. Default none.
    pub named_proxies: Vec<String>,
    /// How requests are spread over `proxies`. Default one after the other.
    pub proxy_rotation: Rotation,
    /// Rests of a proxy after its first, second, … failure in a row; the last stays. Default 10 s,
    /// 30 s, 2 min, 10 min.
    pub proxy_rests: Vec<Duration>,
    /// The environment's proxies, used where `proxies` is empty. Default none:
    /// [`ProxyEnvironment::read`] reads them.
    pub proxy_environment: ProxyEnvironment,
    /// Whether addresses that are not public may be asked without a seed that names the host.
    /// Default false.
    pub allow_private: bool,
    /// The operator's own hosts and networks, which may be asked at such addresses. Default none.
    pub allow_hosts: Vec<OwnHost>,
    /// Whether certificates go unverified. Default false.
    pub insecure: bool,
    /// A PEM file of authorities that are trusted besides the system's. Default none.
    pub ca_file: Option<PathBuf>,
    /// A PEM file of the certificate, with its chain, that is shown to servers that ask for one. Default none.
    pub client_cert: Option<PathBuf>,
    /// A PEM file of its private key. Default: it is in the same file.
    pub client_key: Option<PathBuf>,
    /// Who resolves names. Default [`Resolver::Hickory`].
    pub resolver: Resolver,
    /// Idle connections that are kept to one host, at most: as many as are in use at once, or a burst of requests makes new ones
    /// each time. Default 4.
    pub idle_per_host: usize,
    /// Hosts whose connections are kept for a while after an answer; further ones are asked with a connection of
    /// their own each time. Default 1,000, or fewer where the process may not open as many files.
    pub kept_hosts: usize,
    /// Addresses that the operator gives for hosts; they are neither looked up nor judged. Default none.
    pub resolve: Vec<HostAddresses>,
    /// How long an address counts at least, whatever its TTL. Default 5 s.
    pub shortest_ttl: Duration,
    /// Whether a name with several addresses is asked at the first of them only, in their order: for a delay per address. Default false.
    pub only_first_address: bool,
    /// Headers of each request, besides our own. Default none.
    pub headers: HeaderMap,
    /// Whether hosts keep cookies with us. Default off.
    pub keep_cookies: KeepCookies,
    /// Where they keep them. Default new ones.
    pub jars: Jars,
    /// Cookies that the operator brings along. Default none.
    pub cookies: Arc<[Cookie]>,
    /// What is said to some hosts only. Default nothing.
    pub hosts: HostRules,
}

impl Default for FetchSettings {
    fn default() -> FetchSettings {
        FetchSettings {
            user_agent: concat!("pgcrawl/", env!("CARGO_PKG_VERSION")).to_owned(),
            from: None,
            accept: "text/html,application/xhtml+xml,application/xml;q=0.9,text/*;q=0.8,*/*;q=0.1"
                .to_owned(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(20),
            total_timeout: Duration::from_secs(60),
            max_body_bytes: 10 * 1024 * 1024,
            proxies: Vec::new(),
            named_proxies: Vec::new(),
            proxy_rotation: Rotation::default(),
            proxy_rests: default_rests(),
            proxy_environment: ProxyEnvironment::default(),
            allow_private: false,
            allow_hosts: Vec::new(),
            insecure: false,
            ca_file: None,
            client_cert: None,
            client_key: None,
            resolver: Resolver::default(),
            idle_per_host: 4,
            kept_hosts: 1_000,
            resolve: Vec::new(),
            shortest_ttl: Duration::from_secs(5),
            only_first_address: false,
            headers: HeaderMap::new(),
            keep_cookies: KeepCookies::Off,
            jars: Jars::default(),
            cookies: Arc::default(),
            hosts: HostRules::default(),
        }
    }
}

impl fmt::Debug for FetchSettings {
    /// Leaves out the proxies' credentials and other secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |proxies: &[String]| -> Vec<String> {
            proxies
                .iter()
                .map(|text| without_credentials(text))
                .collect()
        };
        f.debug_struct("FetchSettings")
            .field("user_agent", &self.user_agent)
            .field("from", &self.from)
            .field("accept", &self.accept)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("proxies", &shown(&self.proxies))
            .field("named_proxies", &shown(&self.named_proxies))
            .field("proxy_rotation", &self.proxy_rotation)
            .field("proxy_rests", &self.proxy_rests)
            .field("proxy_environment", &self.proxy_environment)
            .field("allow_private", &self.allow_private)
            .field("allow_hosts", &self.allow_hosts)
            .field("insecure", &self.insecure)
            .field("ca_file", &self.ca_file)
            .field("client_cert", &self.client_cert)
            .field("client_key", &self.client_key)
            .field("resolver", &self.resolver)
            .field("idle_per_host", &self.idle_per_host)
            .field("kept_hosts", &self.kept_hosts)
            .field("resolve", &self.resolve)
            .field("shortest_ttl", &self.shortest_ttl)
            .field("only_first_address", &self.only_first_address)
            .field("headers", &self.headers)
            .field("keep_cookies", &self.keep_cookies)
            .field("jars", &self.jars)
            .field("cookies", &self.cookies)
            .field("hosts", &self.hosts)
            .finish()
    }
}

/// Where a nameserver listens that is named without a port.
const DNS_PORT: u16 = 53;

/// Who resolves names: `hickory`, `system`, or the `address:port` of a nameserver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolver {
    /// Our own, asking the nameservers of resolv.conf; the system's where there is none.
    #[default]
    Hickory,
    /// The system's (getaddrinfo), a thread for each question.
    System,
    /// Our own, asking this nameserver only.
    At(SocketAddr),
}

impl FromStr for Resolver {
    type Err = String;

    fn from_str(text: &str) -> Result<Resolver, String> {
        match text {
            "hickory" => Ok(Resolver::Hickory),
            "system" => Ok(Resolver::System),
            other => {
                let bare = other.trim_start_matches('[').trim_end_matches(']');
                let usual = bare.parse().map(|ip: IpAddr| (ip, DNS_PORT).into());
                other.parse().or(usual).map(Resolver::At).map_err(|_| {
                    format!(
                        "{other:?} is neither hickory, system nor the address:port of a nameserver"
                    )
                })
            }
        }
    }
}

impl fmt::Display for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resolver::Hickory => f.write_str("hickory"),
            Resolver::System => f.write_str("system"),
            Resolver::At(address) => write!(f, "{address}"),
        }
    }
}

/// What one visit asks of the fetcher.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The time left for it. Below `total_timeout` it is somebody else's hurry (the end of a
    /// claim): then a body that is not complete is an error, not a page cut short. Default 60 s.
    pub budget: Duration,
    /// Whether a body of this media type (`text/html`: lower-case, without parameters) is worth
    /// reading. Default: each is.
    pub wanted: fn(Option<&str>) -> bool,
    /// What the operator's rules say of a media type; where they say something, `wanted` is not asked. Default nothing.
    pub type_rules: TypeRules,
    /// The host's delay, kept before each hop, from the end of the answer before; a hop that it
    /// leaves no time for is a `total_timeout`. It counts against `budget`. Default zero.
    pub pause: Duration,
    /// What is known of the last answer: a 304 is asked for. Default none.
    pub validators: Option<Validators>,
    /// The only address at which the URL's host may be asked, where its name has several: the one
    /// that leave was had for ([`super::Fetcher::address`]). Default none: any.
    pub address: Option<IpAddr>,
    /// What a hop waits for after that, since it is a request like any other; this wait counts, too. Default nothing.
    pub hop_leave: HopLeave,
    /// Under which rules a redirect leads a page to itself. Default: those that always hold.
    pub canon: Canon,
    /// Takes bodies that are not to be kept; none of them is in the exchange. Default none.
    pub sink: Option<Sink>,
    /// Whether a hop may be asked for: one that may not is the answer, as a redirect elsewhere is. Default each may.
    pub may_hop: MayHop,
    /// What a body above 256 KiB waits for, so that many large ones do not fill the memory; this wait counts, too. Default nothing.
    pub room: BodyRoom,
}

impl Default for FetchOptions {
    fn default() -> FetchOptions {
        FetchOptions {
            budget: FetchSettings::default().total_timeout,
            wanted: |_| true,
            type_rules: TypeRules::default(),
            pause: Duration::ZERO,
            validators: None,
            address: None,
            hop_leave: HopLeave::default(),
            canon: Canon::default(),
            sink: None,
            may_hop: MayHop::default(),
            room: BodyRoom::default(),
        }
    }
}

/// Says whether an operator wants bodies of a media type.
#[derive(Clone, Default)]
pub struct TypeRules(Option<Arc<TypeJudge>>);

type TypeJudge = dyn Fn(&str) -> Option<bool> + Send + Sync;

impl TypeRules {
    /// Rules that are asked of a media type, in lower case and without parameters.
    pub fn new(rules: impl Fn(&str) -> Option<bool> + Send + Sync + 'static) -> TypeRules {
        TypeRules(Some(Arc::new(rules)))
    }

    /// What they say; none where there are none, or no type is named.
    pub(super) fn of(&self, media_type: Option<&str>) -> Option<bool> {
        self.0.as_ref()?(media_type?)
    }
}

impl fmt::Debug for TypeRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.0.is_some() { "some" } else { "none" };
        write!(f, "TypeRules({name})")
    }
}

/// Says whether a page's redirect to itself may be followed: its URL may be spelt in a way that robots.txt forbids.
#[derive(Clone, Default)]
pub struct MayHop(Option<Arc<Judge>>);

type Judge = dyn Fn(Url) -> BoxFuture<'static, bool> + Send + Sync;

impl MayHop {
    /// A judge of URLs, who may take long over it. He is asked for each hop, before its delay.
    pub fn new<F>(judge: impl Fn(Url) -> F + Send + Sync + 'static) -> MayHop
    where
        F: Future<Output = bool> + Send + 'static,
    {
        MayHop(Some(Arc::new(move |url| Box::pin(judge(url)))))
    }

    pub(super) async fn allows(&self, url: &Url) -> bool {
        match &self.0 {
            Some(judge) => judge(url.clone()).await,
            None => true,
        }
    }
}

impl fmt::Debug for MayHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MayHop").field(&self.0.is_some()).finish()
    }
}

/// Room for a body in memory, as a wait that somebody else knows, who keeps it for as long as he likes.
#[derive(Clone, Default)]
pub struct BodyRoom(Option<Arc<Landlord>>);

type Landlord = dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync;

impl BodyRoom {
    /// Room for so many bytes that is had when this future ends. It is asked for once a request at most.
    pub fn new<F>(ask: impl Fn(usize) -> F + Send + Sync + 'static) -> BodyRoom
    where
        F: Future<Output = ()> + Send + 'static,
    {
        BodyRoom(Some(Arc::new(move |bytes| Box::pin(ask(bytes)))))
    }

    /// Waits for it.
    pub(crate) async fn wait(&self, bytes: usize) {
        if let BodyRoom(Some(ask)) = self {
            ask(bytes).await;
        }
    }
}

impl fmt::Debug for BodyRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BodyRoom").field(&self.0.is_some()).finish()
    }
}

/// Leave to make a further request within a visit, as a wait that somebody else knows.
#[derive(Clone, Default)]
pub struct HopLeave(Option<Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>>);

impl HopLeave {
    /// Leave that is had when this future ends.
    pub fn new<F>(ask: impl Fn() -> F + Send + Sync + 'static) -> HopLeave
    where
        F: Future<Output = ()> + Send + 'static,
    {
        HopLeave(Some(Arc::new(move || Box::pin(ask()))))
    }

    pub(super) async fn wait(&self) {
        if let HopLeave(Some(ask)) = self {
            ask().await;
        }
    }
}

impl fmt::Debug for HopLeave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HopLeave").field(&self.0.is_some()).finish()
    }
}
