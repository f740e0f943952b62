//! Which addresses a crawler has no business with.
//!
//! A page may link to `http://127.0.0.1:9200/`, or to a name that resolves there. Such a request
//! would reach what trusts its neighbours: databases, metadata services of clouds, routers. So
//! every address that the IANA registries of special-purpose addresses do not call globally
//! reachable is refused, unless a seed names that very host, or the operator named it or its
//! network as their own. Where another host's robots.txt redirects to, a seed is not enough.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

use super::FetchError;
use super::hosts::is_loopback;

/// Answers whether the operator named a host, and so allows its private addresses.
#[derive(Clone)]
pub struct PrivateGuard {
    named: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    own: Arc<[OwnHost]>,
    is_open: bool,
}

impl PrivateGuard {
    /// A guard that asks `named` for each host with a private address. The host comes as a URL has
    /// it: lower-case, without the port, an IPv6 literal in brackets. It is asked on each request,
    /// so it must be quick.
    pub fn new(named: impl Fn(&str) -> bool + Send + Sync + 'static) -> PrivateGuard {
        PrivateGuard {
            named: Arc::new(named),
            own: Arc::new([]),
            is_open: false,
        }
    }

    /// A guard that refuses every private address.
    pub fn closed() -> PrivateGuard {
        PrivateGuard::new(|_| false)
    }

    /// A guard that refuses nothing (`--allow-private`).
    pub fn open() -> PrivateGuard {
        PrivateGuard {
            is_open: true,
            ..PrivateGuard::closed()
        }
    }

    /// The same guard for an operator with hosts and networks of their own (`allow_hosts`).
    pub fn with_own(self, own: &[OwnHost]) -> PrivateGuard {
        PrivateGuard {
            own: own.into(),
            ..self
        }
    }

    /// The same guard for a URL that a stranger chose: that a seed names its host is not enough.
    pub(super) fn for_strangers(&self) -> PrivateGuard {
        PrivateGuard {
            named: Arc::new(|_| false),
            ..self.clone()
        }
    }

    /// Whether this host may be asked at this address.
    pub fn allows(&self, host: &str, ip: IpAddr) -> bool {
        is_public(ip)
            || self.is_open
            || self.own.iter().any(|own| own.holds(host, ip))
            || (self.named)(host)
    }

    /// Judges a URL whose host is an IP literal, which no resolver ever sees. The `url` crate has
    /// already unmasked spellings such as `http://2130706433/` and `http://0x7f.1/`.
    ///
    /// # Errors
    /// [`FetchError::PrivateAddress`] if the literal is not public and nobody named it.
    pub(super) fn judge_literal(&self, url: &Url) -> Result<(), FetchError> {
        match literal(url) {
            Some(ip) => self.judge(url, ip),
            None => Ok(()),
        }
    }

    /// The same for a URL that a proxy is to ask for, and that names the machine itself (RFC 6761 §6.3): `localhost` there is the
    /// proxy's.
    ///
    /// # Errors
    /// As [`PrivateGuard::judge_literal`].
    pub(super) fn judge_for_proxy(&self, url: &Url) -> Result<(), FetchError> {
        match is_loopback(url) {
            true => self.judge(url, literal(url).unwrap_or(Ipv4Addr::LOCALHOST.into())),
            false => Ok(()),
        }
    }

    fn judge(&self, url: &Url, ip: IpAddr) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default();
        if self.allows(host, ip) {
            Ok(())
        } else {
            Err(FetchError::PrivateAddress {
                host: host.to_owned(),
                ip,
            })
        }
    }
}

impl fmt::Debug for PrivateGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateGuard").finish_non_exhaustive()
    }
}

/// The address that a URL spells out.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
        Host::Domain(_) => None,
    }
}

/// What an operator calls their own: a host's name (`wiki.example.org`), all names below one
/// (`*.example.org`), an address, or a network (`10.1.0.0/16`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnHost {
    /// This very host, lower-case.
    Name(String),
    /// Every host below this one, lower-case.
    Below(String),
    /// Every address of this network, under whatever name.
    Network(IpNet),
}

impl OwnHost {
    fn holds(&self, host: &str, ip: IpAddr) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            OwnHost::Name(name) => name == host,
            OwnHost::Below(name) => host
                .strip_suffix(name.as_str())
                .is_some_and(|head| head.ends_with('.')),
            // ::ffff:10.0.0.1 is 10.0.0.1.
            OwnHost::Network(network) => network.contains(&ip.to_canonical()),
        }
    }
}

impl FromStr for OwnHost {
    type Err = String;

    fn from_str(text: &str) -> Result<OwnHost, String> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(OwnHost::Network(ip.into()));
        }
        if text.contains('/') {
            return text
                .parse::<IpNet>()
                .map(|network| OwnHost::Network(network.trunc()))
                .map_err(|_| format!("{text:?} is no network like 10.0.0.0/8 or fd00::/8"));
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        match Host::parse(name.strip_suffix('.').unwrap_or(name)) {
            Ok(Host::Domain(name)) if below => Ok(OwnHost::Below(name)),
            Ok(Host::Domain(name)) => Ok(OwnHost::Name(name)),
            _ => Err(format!(
                "{text:?} is no host, *.host, address or network like 10.0.0.0/8"
            )),
        }
    }
}

impl fmt::Display for OwnHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnHost::Name(name) => f.write_str(name),
            OwnHost::Below(name) => write!(f, "*.{name}"),
            OwnHost::Network(network) => {
                let single = network.prefix_len() == network.max_prefix_len();
                match single {
                    true => write!(f, "{}", network.addr()),
                    false => write!(f, "{network}"),
                }
            }
        }
    }
}

/// A block that is not globally reachable, with what it is for and the RFC that says so.
type Block<Net> = (Net, &'static str, u16);

/// IANA IPv4 special-purpose address registry, the blocks that are not globally reachable, with
/// multicast (RFC 5771). 192.0.0.0/24 is refused whole, its few anycast addresses with it.
const PRIVATE_V4: [Block<Ipv4Net>; 15] = [
    (v4([0, 0, 0, 0], 8), "this network", 791),
    (v4([10, 0, 0, 0], 8), "private use", 1918),
    (v4([100, 64, 0, 0], 10), "shared by carriers", 6598),
    (v4([127, 0, 0, 0], 8), "loopback", 1122),
    // With the metadata services of clouds.
    (v4([169, 254, 0, 0], 16), "link-local", 3927),
    (v4([172, 16, 0, 0], 12), "private use", 1918),
    (v4([192, 0, 0, 0], 24), "protocol assignments", 6890),
    (v4([192, 0, 2, 0], 24), "documentation", 5737),
    (v4([192, 88, 99, 0], 24), "6to4 relays", 7526),
    (v4([192, 168, 0, 0], 16), "private use", 1918),
    (v4([198, 18, 0, 0], 15), "benchmarking", 2544),
    (v4([198, 51, 100, 0], 24), "documentation", 5737),
    (v4([203, 0, 113, 0], 24), "documentation", 5737),
    (v4([224, 0, 0, 0], 4), "multicast", 5771),
    // With the limited broadcast address.
    (v4([240, 0, 0, 0], 4), "reserved", 1112),
];

/// Global unicast, the only part of IPv6 that IANA hands out (RFC 4291 §2.4).
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// What lies outside of it and has no block of its own.
const UNASSIGNED_V6: Block<Ipv6Net> = (v6([0; 8], 0), "unassigned", 4291);

/// IANA IPv6 special-purpose address registry, the blocks that are not globally reachable, with
/// multicast and the deprecated site-local block. 2001::/23 is refused whole: Teredo, whatever
/// IPv4 addresses it carries, and the few global assignments in it, where no web server is.
const PRIVATE_V6: [Block<Ipv6Net>; 14] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback", 4291),
    (v6([0; 8], 128), "unspecified", 4291),
    // IPv4-compatible, deprecated.
    (v6([0; 8], 96), "IPv4-compatible", 4291),
    (
        v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        "local NAT64",
        8215,
    ),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discard-only", 6666),
    (v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64), "dummy prefix", 9780),
    // With Teredo (RFC 4380) and benchmarking (RFC 5180).
    (
        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        "protocol assignments",
        2928,
    ),
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        "documentation",
        3849,
    ),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation", 9637),
    (
        v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
        "segment routing",
        9602,
    ),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique local", 4193),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local", 4291),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local", 3879),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast", 4291),
];

const fn v4(octets: [u8; 4], length: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// Whether an address is globally reachable after the IANA registries. An IPv6 address that
/// carries an IPv4 address (mapped, NAT64, 6to4) is judged by what it carries.
pub fn is_public(ip: IpAddr) -> bool {
    purpose(ip).is_none()
}

/// What an address that is not globally reachable is for: `loopback`, `private use` …
pub(super) fn purpose(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => purpose_v4(ip),
        IpAddr::V6(ip) => match carried_v4(ip) {
            Some(inner) => purpose_v4(inner),
            None => purpose_v6(ip),
        },
    }
}

fn purpose_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let block = PRIVATE_V4.iter().find(|(net, ..)| net.contains(&ip));
    block.map(|(_, purpose, _)| *purpose)
}

fn purpose_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let block = PRIVATE_V6.iter().find(|(net, ..)| net.contains(&ip));
    let block = block.or_else(|| (!GLOBAL_V6.contains(&ip)).then_some(&UNASSIGNED_V6));
    block.map(|(_, purpose, _)| *purpose)
}

/// The IPv4 address inside ::ffff:0:0/96 (mapped), 64:ff9b::/96 (NAT64, RFC 6052) or 2002::/16
/// (6to4, RFC 3056).
fn carried_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(join(g, h)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn ordinary_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.255.255",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:200::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    /// The last address of each block of both registries, the first, and those just outside, which
    /// are public unless they lie in a neighbour.
    #[test]
    fn every_block_begins_and_ends_where_the_registry_says() {
        let beside_v4 = |ip: u32| {
            let in_neighbour = PRIVATE_V4
                .iter()
                .any(|(net, ..)| net.contains(&Ipv4Addr::from(ip)));
            is_public(Ipv4Addr::from(ip).into()) || in_neighbour
        };
        for (net, what, rfc) in PRIVATE_V4 {
            let (first, last) = (u32::from(net.network()), u32::from(net.broadcast()));
            for edge in [first, last] {
                let ip = Ipv4Addr::from(edge);
                assert_eq!(purpose(ip.into()), Some(what), "{ip}");
                assert_eq!(purpose(ip.to_ipv6_mapped().into()), Some(what), "{ip}");
                let [a, b, c, d] = ip.octets().map(u16::from);
                let (high, low) = (a << 8 | b, c << 8 | d);
                let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
                let six_to_four = Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5);
                for carrier in [nat64, six_to_four] {
                    assert_eq!(purpose(carrier.into()), Some(what), "{carrier}");
                }
            }
            for beside in [first.checked_sub(1), last.checked_add(1)]
                .into_iter()
                .flatten()
            {
                assert!(beside_v4(beside), "{} beside {net}", Ipv4Addr::from(beside));
            }
            assert!(rfc > 0);
        }
        let beside_v6 = |ip: u128| {
            let ip = Ipv6Addr::from(ip);
            let in_neighbour = PRIVATE_V6.iter().any(|(net, ..)| net.contains(&ip));
            is_public(ip.into()) || in_neighbour || !GLOBAL_V6.contains(&ip)
        };
        for (net, what, rfc) in PRIVATE_V6 {
            let (first, last) = (u128::from(net.network()), u128::from(net.broadcast()));
            assert_eq!(purpose(Ipv6Addr::from(last).into()), Some(what), "{net}");
            assert!(!is_public(Ipv6Addr::from(first).into()), "{net}");
            for beside in [first.checked_sub(1), last.checked_add(1)]
                .into_iter()
                .flatten()
            {
                assert!(beside_v6(beside), "{} beside {net}", Ipv6Addr::from(beside));
            }
            assert!(rfc > 0);
        }
        let (first, last) = (GLOBAL_V6.network(), u128::from(GLOBAL_V6.broadcast()));
        assert!(is_public(first.into()));
        for beside in [u128::from(first) - 1, last + 1] {
            assert_eq!(purpose(Ipv6Addr::from(beside).into()), Some("unassigned"));
        }
    }

    #[test]
    fn a_literal_is_judged_in_any_spelling() {
        let guard = PrivateGuard::closed();
        for text in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
            "http://[::ffff:10.0.0.1]/",
            "http://[0:0:0:0:0:FFFF:0A00:0001]/",
            "http://[64:ff9b::10.0.0.1]/",
        ] {
            let verdict = guard.judge_literal(&Url::parse(text).unwrap());
            assert_eq!(verdict.unwrap_err().class(), "private_address", "{text}");
        }
        assert!(
            guard
                .judge_literal(&Url::parse("http://8.8.8.8/").unwrap())
                .is_ok()
        );
    }

    #[test]
    fn this_machine_s_names_are_no_way_around_it_behind_a_proxy() {
        let guard = PrivateGuard::closed().with_own(&["localhost".parse().unwrap()]);
        let judged = |text: &str| guard.judge_for_proxy(&Url::parse(text).unwrap());
        for text in ["http://x.localhost:9200/", "http://LOCALHOST.LocalHost./"] {
            assert_eq!(judged(text).unwrap_err().class(), "private_address");
        }
        assert!(judged("http://localhost:9200/").is_ok());
        assert!(judged("http://localhost.example.org/").is_ok());
    }

    #[test]
    fn what_a_stranger_chose_is_private_though_a_seed_names_it() {
        let own = ["10.0.0.0/8".parse().unwrap()];
        let named = PrivateGuard::new(|_| true).with_own(&own).for_strangers();
        assert!(!named.allows("a.test", "192.168.0.1".parse().unwrap()));
        assert!(named.allows("a.test", "10.0.0.1".parse().unwrap()));
        let open = PrivateGuard::open().for_strangers();
        assert!(open.allows("a.test", "192.168.0.1".parse().unwrap()));
    }

    #[test]
    fn a_seed_allows_the_very_host_it_names() {
        let guard = PrivateGuard::new(|host| host == "127.0.0.1" || host == "[::1]");
        assert!(
            guard
                .judge_literal(&Url::parse("http://127.0.0.1:81/").unwrap())
                .is_ok()
        );
        assert!(
            guard
                .judge_literal(&Url::parse("http://[0:0::1]/").unwrap())
                .is_ok()
        );
        assert!(
            guard
                .judge_literal(&Url::parse("http://127.0.0.2/").unwrap())
                .is_err()
        );
    }

    #[test]
    fn an_operator_s_own_hosts_and_networks_are_allowed_and_nothing_beside_them() {
        let own: Vec<OwnHost> = [
            "10.1.0.0/16",
            "fd00::/8",
            "Wiki.Example.org",
            "*.inner.test",
            "[::1]",
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
        let guard = PrivateGuard::closed().with_own(&own);
        let allows = |host, ip: &str| guard.allows(host, ip.parse().unwrap());
        assert!(allows("any.test", "10.1.255.255"));
        assert!(allows("any.test", "::ffff:10.1.0.1"));
        assert!(allows("any.test", "fd12::1"));
        assert!(allows("[::1]", "::1"));
        assert!(allows("wiki.example.org", "192.168.0.1"));
        assert!(allows("a.b.inner.test", "192.168.0.1"));
        assert!(!allows("any.test", "10.2.0.0"));
        assert!(!allows("a.wiki.example.org", "192.168.0.1"));
        assert!(!allows("inner.test", "192.168.0.1"));
        assert!(!allows("notinner.test", "192.168.0.1"));
        let shown: Vec<String> = own.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "10.1.0.0/16",
                "fd00::/8",
                "wiki.example.org",
                "*.inner.test",
                "::1"
            ]
        );
        for wrong in ["", "10.0.0.0/33", "http://wiki/", "a b", "*."] {
            assert!(wrong.parse::<OwnHost>().is_err(), "{wrong}");
        }
    }
}
