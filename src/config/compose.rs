//! The settings of other modules, made of ours: they own the meaning, and their defaults are held equal by a test.

use secrecy::ExposeSecret;

use super::Config;
use crate::fetch::{FetchSettings, ProxyEnvironment};
use crate::politeness::Limits;
use crate::scope::TrapLimits;

impl Config {
    /// Returns the limits against endless URL spaces.
    pub fn trap_limits(&self) -> TrapLimits {
        TrapLimits {
            max_depth: self.crawl.max_depth,
            max_url_length: self.traps.max_url_length,
            max_segments: self.traps.max_segments,
            max_repeats: self.traps.max_repeats,
        }
    }

    /// Returns how resources are fetched.
    pub fn fetch_settings(&self, proxy_environment: ProxyEnvironment) -> FetchSettings {
        let fetch = &self.fetch;
        FetchSettings {
            user_agent: self.identity.user_agent(),
            connect_timeout: fetch.connect_timeout,
            idle_timeout: fetch.idle_timeout,
            total_timeout: fetch.total_timeout,
            max_body_bytes: fetch.max_body.as_u64(),
            proxy: fetch
                .proxy
                .as_ref()
                .map(|proxy| proxy.expose_secret().to_owned()),
            proxy_environment,
            allow_private: fetch.allow_private,
            insecure: fetch.insecure,
            resolver: fetch.resolver.clone(),
            ..FetchSettings::default()
        }
    }

    /// Returns the ceilings of this process.
    pub fn limits(&self) -> Limits {
        let politeness = &self.politeness;
        Limits {
            rate: politeness.rate,
            per_host: politeness.per_host,
            concurrency: politeness.concurrency,
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
        let fetch = config.fetch_settings(ProxyEnvironment::default());
        assert_eq!(
            format!("{fetch:?}"),
            format!("{:?}", FetchSettings::default())
        );
        assert_eq!(config.limits(), Limits::default());
        assert_eq!(config.crawl.scope, Default::default());
    }
}
