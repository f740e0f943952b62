//! Whether a crawl may go out without saying whom to write to.

use url::{Host, Url};

use super::Identity;
use crate::canon::{PageUrl, SiteKey};
use crate::scope::ScopeKind;

/// What the seeds say about whose servers they are. Bounded: it keeps one site, however many seeds it sees.
#[derive(Debug, Clone, Default)]
pub struct SeedSites {
    first: Option<SiteKey>,
    several: bool,
}

/// What to do about a missing contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// There is a contact, or only the operator's own servers are asked.
    Go,
    /// One site of somebody else, or links that may lead to one: crawl it, and warn.
    Warn,
    /// Several sites: refuse.
    Refuse,
}

impl SeedSites {
    /// Takes one seed into account. Servers of one's own (loopback, private addresses, names without a dot) need no
    /// contact and do not count.
    pub fn observe(&mut self, seed: &PageUrl) {
        if is_own(seed.as_url()) || self.several {
            return;
        }
        let site = seed.host().site();
        match &self.first {
            None => self.first = Some(site),
            Some(first) => self.several = *first != site,
        }
    }
}

/// Judges whether a crawl of these seeds may start.
///
/// A server's operator who is bothered must be able to say so: without a contact one site warns; several sites, or a
/// scope that leads to sites that no seed names, are refused.
pub fn advise(identity: &Identity, scope: ScopeKind, seeds: &SeedSites) -> Advice {
    let wide = seeds.several || matches!(scope, ScopeKind::Any | ScopeKind::Site);
    match (&seeds.first, identity.is_reachable()) {
        (_, true) => Advice::Go,
        // Its own servers, but their links may lead out.
        (None, false) if scope == ScopeKind::Any => Advice::Warn,
        (None, false) => Advice::Go,
        (Some(_), false) if wide => Advice::Refuse,
        (Some(_), false) => Advice::Warn,
    }
}

/// Says whether a URL names a server that can only be the operator's own.
fn is_own(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Some(Host::Ipv6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            !name.contains('.') || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(contact: Option<&str>, scope: ScopeKind, seeds: &[&str]) -> Advice {
        let mut sites = SeedSites::default();
        for seed in seeds {
            sites.observe(&PageUrl::parse(seed).unwrap());
        }
        let identity = Identity {
            contact: contact.map(str::to_owned),
            ..Identity::default()
        };
        advise(&identity, scope, &sites)
    }

    #[test]
    fn one_site_without_a_contact_warns_and_several_are_refused() {
        let one = ["https://example.org/", "https://www.example.org/a"];
        let several = ["https://example.org/", "https://example.com/"];
        assert_eq!(advice(None, ScopeKind::Host, &one), Advice::Warn);
        assert_eq!(advice(None, ScopeKind::Prefix, &one), Advice::Warn);
        assert_eq!(advice(None, ScopeKind::Host, &several), Advice::Refuse);
        assert_eq!(
            advice(Some("https://example.org/bot"), ScopeKind::Any, &several),
            Advice::Go
        );
    }

    #[test]
    fn a_scope_beyond_the_seeds_hosts_is_refused_without_a_contact() {
        assert_eq!(
            advice(None, ScopeKind::Site, &["https://example.org/"]),
            Advice::Refuse
        );
        assert_eq!(
            advice(None, ScopeKind::Any, &["https://example.org/"]),
            Advice::Refuse
        );
    }

    #[test]
    fn servers_of_ones_own_need_no_contact() {
        let own = [
            "http://127.0.0.1:8080/",
            "http://[::1]/",
            "http://10.1.2.3/",
            "http://wiki/",
            "http://a.localhost/",
        ];
        assert_eq!(advice(None, ScopeKind::Host, &own), Advice::Go);
        assert_eq!(advice(None, ScopeKind::Any, &own), Advice::Warn);
        assert_eq!(
            advice(None, ScopeKind::Host, &["http://wiki/", "http://8.8.8.8/"]),
            Advice::Warn
        );
    }

    #[test]
    fn a_user_agent_that_names_a_contact_is_one() {
        let identity = Identity {
            user_agent: Some("bot/1 (+https://example.org/bot)".into()),
            ..Identity::default()
        };
        assert!(identity.is_reachable());
        let identity = Identity {
            user_agent: Some("bot/1".into()),
            ..Identity::default()
        };
        assert!(!identity.is_reachable());
    }

    #[test]
    fn a_mail_address_for_a_contact_is_said_in_its_own_header_and_a_page_is_not() {
        let from = |contact: &str| {
            let identity = Identity {
                contact: Some(contact.to_owned()),
                ..Identity::default()
            };
            identity.from().map(str::to_owned)
        };
        assert_eq!(from("bot@example.org").as_deref(), Some("bot@example.org"));
        assert_eq!(
            from("mailto:bot@example.org").as_deref(),
            Some("bot@example.org")
        );
        assert_eq!(from("https://example.org/@bot"), None);
        assert_eq!(Identity::default().from(), None);
    }
}
