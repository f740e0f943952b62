//! `NO_PROXY`: what is asked directly though the environment names a proxy.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// `NO_PROXY`.
#[derive(Debug, Default)]
pub(super) struct Bypass {
    everything: bool,
    networks: Vec<IpNet>,
    /// Lower-case, without a leading dot, with the port if one is named.
    names: Vec<(String, Option<u16>)>,
}

impl Bypass {
    pub(super) fn parse(text: &str) -> Bypass {
        let mut bypass = Bypass::default();
        for entry in text
            .split([',', ' '])
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let bare = entry.trim_start_matches('[').trim_end_matches(']');
            if entry == "*" {
                bypass.everything = true;
            } else if let Ok(ip) = bare.parse::<IpAddr>() {
                bypass.networks.push(ip.into());
            } else if let Ok(network) = entry.parse::<IpNet>() {
                bypass.networks.push(network);
            } else {
                let (name, port) = match entry.rsplit_once(':') {
                    Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
                    _ => (entry, None),
                };
                let name = name.trim_start_matches("*.").trim_start_matches('.');
                bypass.names.push((name.to_ascii_lowercase(), port));
            }
        }
        bypass
    }

    pub(super) fn covers(&self, url: &Url) -> bool {
        if self.everything {
            return true;
        }
        let ip: IpAddr = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            Some(Host::Domain(name)) => return self.covers_name(name, url.port_or_known_default()),
            None => return false,
        };
        ip.is_loopback()
            || self.networks.iter().any(|network| network.contains(&ip))
            || self.covers_name(&ip.to_string(), url.port_or_known_default())
    }

    fn covers_name(&self, host: &str, port: Option<u16>) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        if host == "localhost" || host.ends_with(".localhost") {
            return true;
        }
        self.names.iter().any(|(name, named_port)| {
            let below = || {
                host.strip_suffix(name.as_str())
                    .is_some_and(|head| head.ends_with('.'))
            };
            (host == name || below()) && (named_port.is_none() || *named_port == port)
        })
    }
}
