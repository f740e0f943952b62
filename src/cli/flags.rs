//! Flags that are settings: each stands for a key of the configuration and has no default of its own.

use clap::Args;

use super::scope_flags::ScopeFlags;
use crate::config::FlagValue;

/// Flags of the commands that crawl.
#[derive(Debug, Clone, Default, Args)]
pub struct CrawlFlags {
    /// Which links belong to the crawl
    ///
    /// Those on a seed's host, on its site (registrable domain, so with subdomains), below its path (prefix), or any. A
    /// seed that redirects to its www or https twin widens its scope to that. Key crawl.scope, default host.
    #[arg(long, value_name = "KIND", value_parser = ["host", "site", "prefix", "any"], help_heading = "What to crawl")]
    pub scope: Option<String>,

    /// Hops from a seed, at most
    ///
    /// 0 visits the seeds alone. Key crawl.max_depth, default 20.
    #[arg(long, value_name = "HOPS", help_heading = "What to crawl")]
    pub max_depth: Option<String>,

    /// Sitemaps of robots.txt: auto, include, only or skip
    ///
    /// auto reads them where whole hosts or sites are crawled, include on all hosts of any crawl, only does not follow
    /// links of pages besides, skip reads none. Key sitemap.read, default auto.
    #[arg(long, value_name = "USE", value_parser = ["auto", "include", "only", "skip"], help_heading = "What to crawl", hide_short_help = true)]
    pub sitemap: Option<String>,

    /// Order within a host
    ///
    /// breadth-first, depth-first, seeds (all that the first leads to first), sitemap (its priority, then the newest),
    /// in-links (most linked first) or random. Key crawl.order, default breadth-first.
    #[arg(long, value_name = "ORDER", value_parser = ["breadth-first", "depth-first", "seeds", "sitemap", "in-links", "random"], help_heading = "What to crawl", hide_short_help = true)]
    pub order: Option<String>,

    /// End after so many visits
    ///
    /// The rest stays in the frontier, and the next run goes on with it. Exit code 4. Key crawl.max_pages, default none.
    #[arg(long, value_name = "COUNT", help_heading = "What to crawl")]
    pub max_pages: Option<String>,

    /// End after so long a time
    ///
    /// A duration like 30s, 10m or 2h. The rest stays in the frontier. Exit code 4. Key crawl.max_duration, default none.
    #[arg(long, value_name = "TIME", help_heading = "What to crawl")]
    pub max_duration: Option<String>,

    /// Keep the decoded text of pages in table bodies
    ///
    /// Key crawl.store_bodies, default false.
    #[arg(long, help_heading = "What to crawl")]
    pub store_bodies: bool,

    /// File of hosts and URLs that must not be visited; repeatable
    ///
    /// `example.org`, `*.example.org` or `https://example.org/private` a line. Read again when it changes; counts for all
    /// processes of the crawl. Key scope.block_lists, default none.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "What to crawl",
        hide_short_help = true
    )]
    pub block_list: Vec<String>,

    /// Session ids in a URL make no other page
    ///
    /// `;jsessionid=…`, `PHPSESSID=…`, ASP.NET's `(S(…))` and their like. Pages are fetched as linked. Settled by the
    /// first seeds. Key canon.strip_session_ids, default off.
    #[arg(long, help_heading = "What to crawl", hide_short_help = true)]
    pub strip_session_ids: bool,

    /// Tracking parameters in a URL make no other page
    ///
    /// `utm_*`, `gclid`, `fbclid` and their like. Pages are fetched as linked. Settled by the first seeds. Key
    /// canon.strip_tracking, default off.
    #[arg(long, help_heading = "What to crawl", hide_short_help = true)]
    pub strip_tracking: bool,

    /// Parameters that make no other page, as 'host: name, name*'; repeatable
    ///
    /// The host may be `*.name`, or `*` for all. Settled by the first seeds. Key canon.ignore_params, default none.
    #[arg(
        long,
        value_name = "RULE",
        help_heading = "What to crawl",
        hide_short_help = true
    )]
    pub ignore_params: Vec<String>,

    /// Fetch what pages are made of, too: pictures, styles, scripts
    ///
    /// Those of a page in scope are taken wherever they lie. Key extract.assets, default false.
    #[arg(long, hide_short_help = true, help_heading = "What to crawl")]
    pub assets: bool,

    /// Keep the links between pages in table links
    ///
    /// none; internal: those from page to page of the crawl; all: those that lead out of it as well. Each has its kind, rel and
    /// text. Key crawl.links, default none.
    #[arg(
        long,
        value_name = "WHICH",
        value_parser = ["none", "internal", "all"],
        help_heading = "What to crawl",
        hide_short_help = true
    )]
    pub links: Option<String>,

    /// Do not follow the links of a page that repeats another one
    ///
    /// Byte for byte; pages.duplicate_of says so. Relative links of a copy in another folder lead elsewhere, and are lost as
    /// well. Key crawl.skip_duplicate_links, default false.
    #[arg(long, help_heading = "What to crawl", hide_short_help = true)]
    pub skip_duplicate_links: bool,

    /// How long in-flight work may take after the first Ctrl-C
    ///
    /// A second Ctrl-C leaves at once; neither loses anything. Key shutdown.grace, default 25s.
    #[arg(long, value_name = "TIME", help_heading = "What to crawl")]
    pub grace: Option<String>,

    /// URL or mail address for those whose site is crawled
    ///
    /// It becomes part of the User-Agent header. Needed for several sites and for scope site or any. Key
    /// identity.contact, default none.
    #[arg(long, value_name = "CONTACT", help_heading = "Being a good guest")]
    pub contact: Option<String>,

    /// The whole User-Agent header
    ///
    /// Key identity.user_agent, default pgcrawl/VERSION with the contact behind it.
    #[arg(long, value_name = "TEXT", help_heading = "Being a good guest")]
    pub user_agent: Option<String>,

    /// Pause between two fetches of a host
    ///
    /// From the end of one to the start of the next, over all machines; a longer Crawl-delay wins. A duration like 500ms
    /// or 2s. 0s is for servers of your own. Key politeness.delay, default 1s.
    #[arg(long, value_name = "TIME", help_heading = "Being a good guest")]
    pub delay: Option<String>,

    /// Pause between two fetches of one address
    ///
    /// Whatever the hosts on it, over all machines; not behind a proxy. Key politeness.ip_delay, default 0s: none.
    #[arg(long, value_name = "TIME", help_heading = "Being a good guest")]
    pub ip_delay: Option<String>,

    /// Requests in flight per host, with --delay 0s
    ///
    /// Key politeness.per_host, default 1.
    #[arg(long, value_name = "COUNT", help_heading = "Being a good guest")]
    pub per_host: Option<String>,

    /// Requests a second in all, at most
    ///
    /// Of the whole crawl, over all machines. Key politeness.rate, default none.
    #[arg(long, value_name = "COUNT", help_heading = "Being a good guest")]
    pub rate: Option<String>,

    /// Requests in flight in all, at most
    ///
    /// Of this process. Key politeness.concurrency, default 64.
    #[arg(long, value_name = "COUNT", help_heading = "Being a good guest")]
    pub concurrency: Option<String>,

    /// Neither fetch nor obey robots.txt
    ///
    /// For sites of your own; it is logged. Key crawl.obey_robots, default true.
    #[arg(long, help_heading = "Being a good guest")]
    pub ignore_robots: bool,

    /// What belongs to the crawl, and how much of it is fetched
    #[command(flatten)]
    pub scope_flags: ScopeFlags,

    /// How requests leave
    #[command(flatten)]
    pub fetch: FetchFlags,
}

/// Flags of the commands that fetch.
#[derive(Debug, Clone, Default, Args)]
pub struct FetchFlags {
    /// Proxy for all requests
    ///
    /// An http, https, socks5 or socks5h URL, label=URL, or a label of `[proxies]` in the file; several take turns, if it
    /// is given several times; direct asks none. With a password in it, the file or PGCRAWL_FETCH_PROXY is the better
    /// place: flags can be seen by other users of the machine. Behind a proxy that looks names up only addresses written
    /// into a URL can be judged as private. Key fetch.proxy, default none.
    #[arg(long, value_name = "URL", help_heading = "Requests")]
    pub proxy: Vec<String>,

    /// How several proxies take turns
    ///
    /// One after the other, each host by the same one, or by chance. One that fails rests, and others take its place.
    /// Key fetch.proxy_rotation, default round-robin.
    #[arg(long, value_name = "HOW", value_parser = ["round-robin", "sticky", "random"], help_heading = "Requests", hide_short_help = true)]
    pub proxy_rotation: Option<String>,

    /// Ask loopback and private addresses that no seed names
    ///
    /// Without it a page or a name server of the web cannot lead the crawler into your network. Key fetch.allow_private,
    /// default false.
    #[arg(long, help_heading = "Requests")]
    pub allow_private: bool,

    /// Header of each request to all hosts, as 'Name: value'; repeatable
    ///
    /// A value may be env:NAME or file:/path. Takes the place of what the file has. Logins and cookies belong to a host: see
    /// `[[hosts]]` in config/default.toml. Key fetch.headers, default none.
    #[arg(
        long = "header",
        value_name = "HEADER",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub header: Vec<String>,

    /// File of cookies to bring along
    ///
    /// In Netscape's form, as a browser's extension or curl -c writes it. Each is shown to its own host only. Key
    /// fetch.cookie_file, default none.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub cookies: Option<String>,
    /// Host or network of your own, which may be asked at a private address
    ///
    /// A name, *.name, address or network like 10.1.0.0/16; may be given several times. Key fetch.allow_hosts, default
    /// none.
    #[arg(
        long,
        value_name = "HOST",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub allow_host: Vec<String>,

    /// Leave certificates unchecked
    ///
    /// Key fetch.insecure, default false.
    #[arg(long, help_heading = "Requests")]
    pub insecure: bool,

    /// Trust the authorities of this PEM file, too
    ///
    /// Besides the system's and Mozilla's. Key fetch.ca_file, default none.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub ca_file: Option<String>,

    /// Certificate for servers that ask for one, a PEM file
    ///
    /// With what signed it. Each server that asks is shown it. Key fetch.client_cert, default none.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub client_cert: Option<String>,

    /// Private key of --client-cert, a PEM file
    ///
    /// Key fetch.client_key, default none: it is in the same file.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub client_key: Option<String>,

    /// Ask this nameserver
    ///
    /// Instead of those of resolv.conf; the port is 53 if none is named. Key fetch.resolver.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub dns: Option<String>,

    /// Who looks names up
    ///
    /// hickory asks the nameservers of resolv.conf and keeps their answers; system is getaddrinfo, with all that the
    /// machine has set up. Key fetch.resolver, default hickory.
    #[arg(long, value_name = "WHO", value_parser = ["hickory", "system"], conflicts_with = "dns", help_heading = "Requests", hide_short_help = true)]
    pub resolver: Option<String>,

    /// Ask a host at this address, without looking its name up
    ///
    /// HOST:ADDRESS, or HOST:PORT:ADDRESS for one port only, as curl has it; several addresses with commas between them;
    /// may be given several times. The address may be a private one, for that very host. A proxy that looks names up
    /// knows nothing of it. Key fetch.resolve, default none.
    #[arg(
        long,
        value_name = "HOST:ADDRESS",
        help_heading = "Requests",
        hide_short_help = true
    )]
    pub resolve: Vec<String>,
}

impl CrawlFlags {
    /// Returns the settings that were given.
    pub fn values(&self) -> Vec<FlagValue> {
        let own = [
            text("--scope", "crawl.scope", &self.scope),
            text("--max-depth", "crawl.max_depth", &self.max_depth),
            text("--sitemap", "sitemap.read", &self.sitemap),
            text("--order", "crawl.order", &self.order),
            text("--max-pages", "crawl.max_pages", &self.max_pages),
            text("--max-duration", "crawl.max_duration", &self.max_duration),
            switch(
                "--store-bodies",
                "crawl.store_bodies",
                self.store_bodies,
                "true",
            ),
            list("--block-list", "scope.block_lists", &self.block_list),
            switch(
                "--strip-session-ids",
                "canon.strip_session_ids",
                self.strip_session_ids,
                "v1",
            ),
            switch(
                "--strip-tracking",
                "canon.strip_tracking",
                self.strip_tracking,
                "v1",
            ),
            list(
                "--ignore-params",
                "canon.ignore_params",
                &self.ignore_params,
            ),
            switch("--assets", "extract.assets", self.assets, "true"),
            text("--links", "crawl.links", &self.links),
            switch(
                "--skip-duplicate-links",
                "crawl.skip_duplicate_links",
                self.skip_duplicate_links,
                "true",
            ),
            text("--contact", "identity.contact", &self.contact),
            text("--user-agent", "identity.user_agent", &self.user_agent),
            text("--delay", "politeness.delay", &self.delay),
            text("--ip-delay", "politeness.ip_delay", &self.ip_delay),
            text("--per-host", "politeness.per_host", &self.per_host),
            text("--rate", "politeness.rate", &self.rate),
            text("--concurrency", "politeness.concurrency", &self.concurrency),
            switch(
                "--ignore-robots",
                "crawl.obey_robots",
                self.ignore_robots,
                "false",
            ),
            text("--grace", "shutdown.grace", &self.grace),
        ];
        own.into_iter()
            .flatten()
            .chain(self.scope_flags.values())
            .chain(self.fetch.values())
            .collect()
    }
}

impl FetchFlags {
    /// Returns the settings that were given.
    pub fn values(&self) -> Vec<FlagValue> {
        let all = [
            match &self.proxy[..] {
                [one] => Some(FlagValue::new("--proxy", "fetch.proxy", one.as_str())),
                several => list("--proxy", "fetch.proxy", several),
            },
            text(
                "--proxy-rotation",
                "fetch.proxy_rotation",
                &self.proxy_rotation,
            ),
            switch(
                "--allow-private",
                "fetch.allow_private",
                self.allow_private,
                "true",
            ),
            list("--allow-host", "fetch.allow_hosts", &self.allow_host),
            switch("--insecure", "fetch.insecure", self.insecure, "true"),
            text("--cookies", "fetch.cookie_file", &self.cookies),
            headers(&self.header),
            text("--ca-file", "fetch.ca_file", &self.ca_file),
            text("--client-cert", "fetch.client_cert", &self.client_cert),
            text("--client-key", "fetch.client_key", &self.client_key),
            text("--dns", "fetch.resolver", &self.dns),
            text("--resolver", "fetch.resolver", &self.resolver),
            list("--resolve", "fetch.resolve", &self.resolve),
        ];
        all.into_iter().flatten().collect()
    }
}

pub(super) fn text(
    flag: &'static str,
    key: &'static str,
    value: &Option<String>,
) -> Option<FlagValue> {
    value
        .as_ref()
        .map(|value| FlagValue::new(flag, key, value.as_str()))
}

/// The headers as a list of lines, which the key takes as well as a table.
fn headers(lines: &[String]) -> Option<FlagValue> {
    let list: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = toml::Value::from(list).to_string();
    (!lines.is_empty()).then(|| FlagValue::new("--header", "fetch.headers", text))
}

/// A flag that may be given several times.
fn list(flag: &'static str, key: &'static str, values: &[String]) -> Option<FlagValue> {
    let list = toml::Value::from(values.to_vec());
    (!values.is_empty()).then(|| FlagValue::new(flag, key, list.to_string()))
}

pub(super) fn switch(
    flag: &'static str,
    key: &'static str,
    given: bool,
    value: &'static str,
) -> Option<FlagValue> {
    given.then(|| FlagValue::new(flag, key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Loaded};

    fn load(values: Vec<FlagValue>) -> Loaded {
        Layers::new().flags(values).finish().unwrap()
    }

    #[test]
    fn every_flag_sets_its_key() {
        let set = |value: &str| Some(value.to_owned());
        let flags = CrawlFlags {
            scope: set("prefix"),
            max_depth: set("3"),
            sitemap: set("only"),
            order: set("depth-first"),
            max_pages: set("100"),
            max_duration: set("10m"),
            store_bodies: true,
            block_list: vec!["optout.txt".to_owned()],
            strip_session_ids: true,
            strip_tracking: true,
            ignore_params: vec!["example.org: ref".to_owned()],
            assets: true,
            links: set("all"),
            skip_duplicate_links: true,
            contact: set("https://example.org/bot"),
            user_agent: set("examplebot/1.0"),
            delay: set("0s"),
            ip_delay: set("250ms"),
            per_host: set("4"),
            rate: set("2.5"),
            concurrency: set("7"),
            ignore_robots: true,
            scope_flags: ScopeFlags::default(),
            fetch: FetchFlags {
                proxy: vec![
                    "http://proxy.example:3128".to_owned(),
                    "a=socks5://b.example".to_owned(),
                ],
                proxy_rotation: set("sticky"),
                allow_private: true,
                allow_host: vec!["10.0.0.0/8".to_owned(), "*.lab.example".to_owned()],
                insecure: true,
                header: vec!["Accept-Language: de".into(), "X-A: env:A".into()],
                cookies: set("cookies.txt"),
                ca_file: set("ca.pem"),
                client_cert: set("me.pem"),
                client_key: set("me.key"),
                dns: set("127.0.0.1:5353"),
                resolver: None,
                resolve: vec!["a.example:127.0.0.1".to_owned()],
            },
            grace: set("5s"),
        };
        let values = flags.values();
        let (loaded, plain) = (load(values.clone()), load(Vec::new()));
        for value in &values {
            let key = crate::config::Key::find_path(value.key).unwrap();
            assert_ne!(
                key.show(&loaded.config),
                key.show(&plain.config),
                "{}",
                value.flag
            );
            assert_eq!(loaded.origin(value.key).to_string(), value.flag);
        }
        assert_eq!(values.len(), 35);
    }
}
