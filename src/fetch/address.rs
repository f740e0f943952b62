//! Which addresses a crawler has no business with.
//!
//! A page may link to `http://127.0.0.1:9200/`, or to a name that resolves there. Such a request
//! would reach what trusts its neighbours: databases, metadata services of clouds, routers. So
//! every address that the IANA registries of special-purpose addresses do not call globally
//! reachable is refused, unless a seed names that very host or the operator allows all.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

use super::FetchError;

/// Answers whether the operator named a host, and so allows its private addresses.
#[derive(Clone)]
pub struct PrivateGuard {
    named: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl PrivateGuard {
    /// A guard that asks `named` for each host with a private address. The host comes as a URL has
    /// it: lower-case, without the port, an IPv6 literal in brackets. It is asked on each request,
    /// so it must be quick.
    pub fn new(named: impl Fn(&str) -> bool + Send + Sync + 'static) -> PrivateGuard {
        PrivateGuard {
            named: Arc::new(named),
        }
    }

    /// A guard that refuses every private address.
    pub fn closed() -> PrivateGuard {
        PrivateGuard::new(|_| false)
    }

    /// A guard that refuses nothing (`--allow-private`).
    pub fn open() -> PrivateGuard {
        PrivateGuard::new(|_| true)
    }

    /// Whether private addresses of this host may be asked.
    pub fn allows(&self, host: &str) -> bool {
        (self.named)(host)
    }

    /// Judges a URL whose host is an IP literal, which no resolver ever sees. The `url` crate has
    /// already unmasked spellings such as `http://2130706433/` and `http://0x7f.1/`.
    ///
    /// # Errors
    /// [`FetchError::PrivateAddress`] if the literal is not public and nobody named it.
    pub(super) fn judge_literal(&self, url: &Url) -> Result<(), FetchError> {
        let ip: IpAddr = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        let host = url.host_str().unwrap_or_default();
        if is_public(ip) || self.allows(host) {
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

/// IANA IPv4 special-purpose address registry, the blocks that are not globally reachable, with
/// multicast (RFC 5771). 192.0.0.0/24 is refused whole, its few anycast addresses with it.
const PRIVATE_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),       // this network, RFC 791
    v4([10, 0, 0, 0], 8),      // private use, RFC 1918
    v4([100, 64, 0, 0], 10),   // shared by carriers (CGNAT), RFC 6598
    v4([127, 0, 0, 0], 8),     // loopback, RFC 1122
    v4([169, 254, 0, 0], 16),  // link local, RFC 3927; metadata of clouds
    v4([172, 16, 0, 0], 12),   // private use, RFC 1918
    v4([192, 0, 0, 0], 24),    // protocol assignments, RFC 6890
    v4([192, 0, 2, 0], 24),    // documentation, RFC 5737
    v4([192, 88, 99, 0], 24),  // 6to4 relays, deprecated, RFC 7526
    v4([192, 168, 0, 0], 16),  // private use, RFC 1918
    v4([198, 18, 0, 0], 15),   // benchmarking, RFC 2544
    v4([198, 51, 100, 0], 24), // documentation, RFC 5737
    v4([203, 0, 113, 0], 24),  // documentation, RFC 5737
    v4([224, 0, 0, 0], 4),     // multicast, RFC 5771
    v4([240, 0, 0, 0], 4),     // reserved, and broadcast, RFC 1112
];

/// Global unicast, the only part of IPv6 that IANA hands out (RFC 4291 §2.4).
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// IANA IPv6 special-purpose address registry inside 2000::/3; what is outside of it is not global
/// unicast at all.
const PRIVATE_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // protocol assignments with Teredo, RFC 2928
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation, RFC 3849
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation, RFC 9637
    v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), // direct delegation AS112, RFC 7534
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
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match carried_v4(ip) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(ip),
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    !PRIVATE_V4.iter().any(|net| net.contains(&ip))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    GLOBAL_V6.contains(&ip) && !PRIVATE_V6.iter().any(|net| net.contains(&ip))
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
            "2620:4f:8000::1",
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
}
