//! The settings of other modules, made of ours: they own the meaning, and their defaults are held equal by a test.

use std::time::Duration;

use super::{Config, Surroundings};
use crate::canon::{Canon, CanonOptions};
use crate::crawl::{Budget, CrawlSettings, SitemapSettings};
use crate::db::DbSettings;
use crate::fetch::FetchSettings;
use crate::frontier::FrontierSettings;
use crate::schedule::RetrySettings;
use crate::scope::shape::ShapeLimits;
use crate::scope::{Scope, TrapLimits};

impl Config {
    /// Returns the limits against endless URL spaces.
    pub fn trap_limits(&self) -> TrapLimits {
        TrapLimits {
            max_depth: self.crawl.max_depth,
            max_url_length: self.traps.max_url_length,
            max_segments: self.traps.max_segments,
            max_repeats: self.traps.max_repeats,
            max_parameters: self.traps.max_parameters,
            max_nesting: self.traps.max_nesting,
            max_years_ahead: self.traps.max_years_ahead,
        }
    }

    /// Returns when a shape of URLs counts as a trap.
    pub fn shape_limits(&self) -> ShapeLimits {
        ShapeLimits {
            pages: self.traps.shape_pages,
            share: self.traps.shape_share,
        }
    }

    /// Returns the scope, without the rules of its seeds.
    pub fn scope(&self) -> Scope {
        Scope::new(self.crawl.scope, self.trap_limits())
            .with_rules(&self.scope.rules)
            .with_extra_hops(self.scope.extra_hops)
    }

    /// Returns how much is fetched, over all machines.
    pub fn budget(&self) -> Budget {
        let (budget, scope) = (&self.budget, self.crawl.scope);
        Budget {
            pages: budget.pages,
            bytes: budget.bytes.map(|bytes| bytes.as_u64()),
            duration: budget.duration,
            pages_per_host: budget.pages_per_host.pages(scope),
            urls_per_host: budget.urls_per_host.urls(scope),
        }
    }

    /// Returns the rules under which URLs are compared.
    pub fn canon(&self) -> Canon {
        Canon::new(CanonOptions {
            session_ids: self.canon.strip_session_ids,
            tracking: self.canon.strip_tracking,
            ignore: self.canon.ignore_params.clone(),
        })
    }

    /// Returns how resources are fetched.
    pub fn fetch_settings(&self, surroundings: Surroundings) -> FetchSettings {
        let Surroundings {
            sessions,
            proxies,
            named_proxies,
            proxy_environment,
        } = surroundings;
        let fetch = &self.fetch;
        FetchSettings {
            user_agent: self.identity.user_agent(),
            from: self.identity.from().map(str::to_owned),
            connect_timeout: fetch.connect_timeout,
            idle_timeout: fetch.idle_timeout,
            total_timeout: fetch.total_timeout,
            max_body_bytes: fetch.max_body.as_u64(),
            proxy_rotation: fetch.proxy_rotation,
            proxy_rests: fetch.proxy_rests.clone(),
            proxies,
            named_proxies,
            proxy_environment,
            allow_private: fetch.allow_private,
            allow_hosts: fetch.allow_hosts.clone(),
            insecure: fetch.insecure,
            ca_file: fetch.ca_file.clone(),
            client_cert: fetch.client_cert.clone(),
            client_key: fetch.client_key.clone(),
            resolver: fetch.resolver.clone(),
            resolve: fetch.resolve.clone(),
            only_first_address: !self.politeness.ip_delay.is_zero(),
            idle_per_host: usize::try_from(self.politeness.per_host)
                .unwrap_or(usize::MAX)
                .max(FetchSettings::default().idle_per_host),
            headers: sessions.headers,
            keep_cookies: fetch.cookies,
            jars: sessions.jars,
            cookies: sessions.cookies.into(),
            hosts: sessions.hosts,
            ..FetchSettings::default()
        }
    }

    /// Returns the server's limit for one statement: well below the lease, so that a claim that stands in a queue is not older than its
    /// lease when it ends.
    pub fn statement_timeout(&self) -> Duration {
        // Below a second a busy server would be taken for one in trouble.
        let most = (self.frontier.lease / 4).max(Duration::from_secs(1));
        self.database.statement_timeout.min(most)
    }

    /// Returns how connections to the server itself are made.
    pub fn db_settings(&self) -> DbSettings {
        let defaults = DbSettings::default();
        let statement_timeout = self.statement_timeout();
        DbSettings {
            max_connections: self.database.max_connections,
            statement_timeout,
            lock_timeout: defaults.lock_timeout.min(statement_timeout / 2),
            idle_in_transaction_timeout: defaults
                .idle_in_transaction_timeout
                .min(statement_timeout),
            ..defaults
        }
    }

    /// Returns how connections for the crawl's statements are made: through the pooler, where there is one.
    pub fn crawl_db_settings(&self) -> DbSettings {
        DbSettings {
            through_pooler: self.database.direct_url.is_some(),
            ..self.db_settings()
        }
    }

    /// Returns what the statements of the frontier need to know. `version`: that of the crawl's settings among them.
    pub fn frontier_settings(&self, version: i32) -> FrontierSettings {
        let frontier = &self.frontier;
        FrontierSettings {
            version,
            delay: self.politeness.delay,
            ip_delay: self.politeness.ip_delay,
            lease: frontier.lease,
            heartbeat: frontier.heartbeat,
            dead_after: frontier.dead_after,
            hold: frontier.hold,
            max_expiries: frontier.max_expiries,
            obey_robots: self.crawl.obey_robots,
            canon: self.canon(),
            skip_duplicate_links: self.crawl.skip_duplicate_links,
            patience: self.database.patience,
            statement_timeout: self.statement_timeout(),
            route: self.crawl_db_settings().route(),
            ..FrontierSettings::default()
        }
    }

    /// Returns when a task is tried again.
    pub fn retry_settings(&self) -> RetrySettings {
        let retry = &self.retry;
        RetrySettings {
            waits: retry.waits.clone(),
            dns_waits: retry.dns_waits.clone(),
            jitter: retry.jitter,
            breaker_failures: retry.breaker_after,
            breaker_pauses: retry.breaker_pauses.clone(),
            robots_wait: retry.robots_wait,
            robots_tries: retry.robots_tries,
            ..RetrySettings::default()
        }
    }

    /// Returns how sitemaps are found and read.
    pub fn sitemap_settings(&self) -> SitemapSettings {
        SitemapSettings {
            used: self.sitemap.read,
            guess: self.sitemap.guess,
            max_bytes: self.sitemap.max_size.as_u64(),
            max_urls: self.sitemap.max_urls,
        }
    }

    /// Returns how this process crawls.
    pub fn crawl_settings(&self) -> CrawlSettings {
        CrawlSettings {
            concurrency: self.politeness.concurrency,
            per_host: usize::try_from(self.politeness.per_host).unwrap_or(usize::MAX),
            rate: self.politeness.rate,
            ip_delay: self.politeness.ip_delay,
            visit_budget: self.fetch.total_timeout,
            max_pages: self.crawl.max_pages,
            max_duration: self.crawl.max_duration,
            max_hops: self.crawl.max_hops,
            budget: self.budget(),
            shapes: self.shape_limits(),
            keep_excluded: self.scope.keep_excluded,
            keep_bodies: self.crawl.store_bodies,
            wants: self.extract,
            simhash: self.crawl.simhash,
            links: self.crawl.links,
            robots_token: self.identity.robots_token.clone(),
            block_lists: self.scope.block_lists.clone(),
            sitemaps: self.sitemap_settings(),
            order: self.crawl.order,
            retry: self.retry_settings(),
            grace: self.shutdown.grace,
            recycle_every: self.frontier.recycle_every,
            ..CrawlSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_modules_that_own_them() {
        let config = Config::default();
        assert_eq!(config.trap_limits(), TrapLimits::default());
        assert_eq!(config.shape_limits(), ShapeLimits::default());
        assert_eq!(config.budget(), Budget::default());
        let fetch = config.fetch_settings(Surroundings::default());
        assert_eq!(
            format!("{fetch:?}"),
            format!("{:?}", FetchSettings::default())
        );
        assert_eq!(config.retry_settings(), RetrySettings::default());
        assert_eq!(config.crawl_settings(), CrawlSettings::default());
        assert_eq!(config.frontier_settings(0), FrontierSettings::default());
        assert_eq!(config.crawl.scope, Default::default());
    }
}
