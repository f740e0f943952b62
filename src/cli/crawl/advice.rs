//! Whether a crawl may go out under this identity, and what is good to know of the way that it takes.

use super::super::output::{self, WithHint};
use crate::canon::PageUrl;
use crate::config::{Advice, Config, SeedSites, advise};
use crate::crawl::Crawl;
use crate::scope::ScopeKind;

/// Warns or refuses where the operators of crawled sites would not know whom to write to.
///
/// Judged by what the crawl holds, so that a crawl that goes on is judged like one that begins.
///
/// # Errors
///
/// Several sites, or a scope that leads to others, without a contact.
pub(super) async fn contact(config: &Config, crawl: &Crawl) -> anyhow::Result<()> {
    let mut sites = SeedSites::default();
    for host in crawl.seed_hosts().await? {
        if let Ok(url) = PageUrl::parse(&format!("https://{host}/")) {
            sites.observe(&url);
        }
    }
    const HINT: &str =
        "give one with --contact, or as identity.contact in pgcrawl.toml: a URL or a mail address";
    let own = crawl.seed_scopes().await?;
    let leads_on = own
        .into_iter()
        .find(|kind| matches!(kind, ScopeKind::Site | ScopeKind::Any));
    let scope = leads_on.unwrap_or(config.crawl.scope);
    match advise(&config.identity, scope, &sites) {
        Advice::Go => Ok(()),
        Advice::Warn => {
            output::warn(
                "no contact is set: the site's operators cannot tell whom to write to",
                Some(HINT),
            );
            Ok(())
        }
        Advice::Refuse => {
            Err(anyhow::anyhow!("a crawl of several sites needs a contact")).hint(HINT)
        }
    }
}

/// Says once through which proxies requests go, and what that means for the guard of private addresses.
pub(super) fn proxies(crawl: &Crawl) {
    let (labels, look_names_up) = crawl.proxies();
    if labels.is_empty() {
        return;
    }
    tracing::info!(
        "requests go through {} (as pages.proxy has them)",
        labels.join(", ")
    );
    if look_names_up {
        tracing::info!(
            "names are looked up by the proxy, so that of private addresses only those written into a URL are refused"
        );
    }
}
