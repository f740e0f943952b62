//! Addresses that the operator gives for hosts, instead of those of a nameserver: curl's
//! `--resolve`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Host;

/// One host with its addresses: `HOST:ADDR`, or with curl's port `HOST:PORT:ADDR`; several
/// addresses with commas between them, an IPv6 address in brackets if a port is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddresses {
    /// Lower-case, as a URL has it, without a trailing dot.
    host: String,
    /// The only port that they are for.
    port: Option<u16>,
    /// Never none.
    addresses: Vec<IpAddr>,
}

impl FromStr for HostAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<HostAddresses, String> {
        let wrong = || format!("{text:?} is not HOST:ADDRESS or HOST:PORT:ADDRESS");
        let (host, rest) = text.trim().split_once(':').ok_or_else(wrong)?;
        let (port, addresses) = match read(rest) {
            Some(addresses) => (None, addresses),
            None => {
                let (port, rest) = rest.split_once(':').ok_or_else(wrong)?;
                let port = port.parse().map_err(|_| wrong())?;
                (Some(port), read(rest).ok_or_else(wrong)?)
            }
        };
        match Host::parse(host.strip_suffix('.').unwrap_or(host)) {
            Ok(Host::Domain(host)) => Ok(HostAddresses {
                host,
                port,
                addresses,
            }),
            _ => Err(format!("{text:?}: {host:?} is no host name")),
        }
    }
}

fn read(text: &str) -> Option<Vec<IpAddr>> {
    let one = |text: &str| {
        let text = text.trim();
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        bare.unwrap_or(text).parse().ok()
    };
    text.split(',').map(one).collect()
}

impl fmt::Display for HostAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        for (index, ip) in self.addresses.iter().enumerate() {
            let before = if index == 0 { ':' } else { ',' };
            match ip {
                IpAddr::V4(ip) => write!(f, "{before}{ip}")?,
                IpAddr::V6(ip) => write!(f, "{before}[{ip}]")?,
            }
        }
        Ok(())
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Overrides(Vec<HostAddresses>);

impl Overrides {
    pub(super) fn new(given: &[HostAddresses]) -> Overrides {
        Overrides(given.to_vec())
    }

    /// The addresses given for this host on this port; the last that fits wins.
    pub(super) fn of(&self, host: &str, port: Option<u16>) -> Option<&[IpAddr]> {
        let host = host.strip_suffix('.').unwrap_or(host);
        self.0
            .iter()
            .rev()
            .find(|given| {
                given.host.eq_ignore_ascii_case(host)
                    && (given.port.is_none() || given.port == port)
            })
            .map(|given| &given.addresses[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_given_addresses_with_or_without_a_port() {
        for (text, shown) in [
            ("Example.org:127.0.0.1", "example.org:127.0.0.1"),
            ("example.org.:8080:127.0.0.1", "example.org:8080:127.0.0.1"),
            ("a.test:::1", "a.test:[::1]"),
            ("a.test:443:[::1],10.0.0.1", "a.test:443:[::1],10.0.0.1"),
            ("b\u{fc}cher.test:127.0.0.1", "xn--bcher-kva.test:127.0.0.1"),
        ] {
            let given: HostAddresses = text.parse().unwrap();
            assert_eq!(given.to_string(), shown);
            assert_eq!(shown.parse(), Ok(given));
        }
        for wrong in [
            "",
            "a.test",
            "a.test:80",
            "a.test:x",
            "a.test:80:x",
            "127.0.0.1:127.0.0.2",
            ":1.2.3.4",
        ] {
            assert!(wrong.parse::<HostAddresses>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_limits_what_was_given_to_it_and_the_last_wins() {
        let given = ["a.test:127.0.0.1", "a.test:81:127.0.0.2"].map(|text| text.parse().unwrap());
        let overrides = Overrides::new(&given);
        let of = |host, port| {
            overrides
                .of(host, Some(port))
                .map(|found| found[0].to_string())
        };
        assert_eq!(of("a.test", 80).as_deref(), Some("127.0.0.1"));
        assert_eq!(of("A.test.", 81).as_deref(), Some("127.0.0.2"));
        assert_eq!(of("b.a.test", 80), None);
    }
}
