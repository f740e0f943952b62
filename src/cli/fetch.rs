//! `pgcrawl fetch URL`: one resource, got exactly as a crawl would get it, and what we read in it.
//!
//! The host counts as named by the operator, like a seed's. Nothing is stored.

use clap::Args;
use serde_json::{Map, Value, json};

use super::flags::FetchFlags;
use super::output::WithHint as _;
use super::{Context, Exit, output};
use crate::canon::{HrefCache, PageUrl};
use crate::config::{Config, FlagValue};
use crate::exchange::{Exchange, Truncated, text};
use crate::extract::fields::{self, Selected};
use crate::extract::{CharsetFrom, Extraction, Input, extract};
use crate::fetch::{FetchError, FetchOptions, Fetcher, PrivateGuard, TlsFailure};
use crate::pages::signals_json;
use crate::robots::{Access, Robots, Verdict, access};

/// Flags of `fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// URL to fetch; a missing scheme means https
    #[arg(value_name = "URL")]
    url: String,

    /// Print the text of the elements that a CSS selector chooses, one a line
    ///
    /// With --json: their names, attributes, texts and HTML.
    #[arg(long, value_name = "CSS")]
    select: Option<String>,

    /// Print status and headers before the body
    #[arg(long)]
    headers: bool,

    /// Print everything that a crawl would learn, as one JSON object
    #[arg(long)]
    json: bool,

    /// Neither fetch nor obey robots.txt
    ///
    /// For sites of your own. Key crawl.obey_robots, default true.
    #[arg(long)]
    ignore_robots: bool,

    /// How requests leave
    #[command(flatten)]
    fetch: FetchFlags,
}

impl FetchArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        let ignore = self
            .ignore_robots
            .then(|| FlagValue::new("--ignore-robots", "crawl.obey_robots", "false"));
        self.fetch.values().into_iter().chain(ignore).collect()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let config = &context.loaded.config;
        let url = PageUrl::seed(&self.url)?;
        let fetcher = fetcher(context, &url)?;
        if config.crawl.obey_robots
            && let Some(refusal) = refusal(&fetcher, config, &url).await
        {
            return refusal;
        }
        let options = FetchOptions {
            budget: config.fetch.total_timeout,
            ..FetchOptions::default()
        };
        let exchange = match fetcher.fetch(&url, &options).await {
            Ok(exchange) => exchange,
            Err(error) => return failed(error),
        };
        let page = read(&exchange, config)?;
        let selected = match &self.select {
            Some(selector) => Some(fields::select(
                page.text.as_deref().unwrap_or_default(),
                selector,
            )?),
            None => None,
        };
        if self.json {
            let object = as_json(&exchange, &page, selected.as_deref());
            output::line(serde_json::to_string_pretty(&object)?)?;
            return Ok(Exit::Finished);
        }
        if self.headers {
            output::print(head(&exchange))?;
        }
        match selected {
            Some(selected) => {
                for element in selected {
                    output::line(element.text)?;
                }
            }
            None => print_text(&page)?,
        }
        remark(&exchange);
        Ok(Exit::Finished)
    }
}

/// A fetcher for which the URL's host is named, like that of a seed.
fn fetcher(context: &Context, url: &PageUrl) -> anyhow::Result<Fetcher> {
    let named = url.host().host().to_owned();
    let config = &context.loaded.config;
    let settings = config.fetch_settings(context.surroundings()?);
    let guard = PrivateGuard::new(move |host| host == named);
    Ok(Fetcher::new(settings, guard)?)
}

/// What the host's robots.txt has against it, if anything.
async fn refusal(
    fetcher: &Fetcher,
    config: &Config,
    url: &PageUrl,
) -> Option<anyhow::Result<Exit>> {
    let found = fetcher
        .fetch_robots(
            url.host(),
            config.fetch.total_timeout,
            std::time::Duration::ZERO,
        )
        .await;
    let robots = match access(found.answer()) {
        Access::AllowAll => return None,
        Access::Rules => Robots::parse(&found.body, &config.identity.robots_token),
        Access::Defer => {
            let reason = match (found.status, found.error) {
                (None, Some(error)) => anyhow::Error::from(error),
                (status, _) => anyhow::anyhow!("status {}", status.unwrap_or_default()),
            };
            let refused = Err(reason.context("cannot get robots.txt, so the site may forbid us"));
            return Some(refused.hint("--ignore-robots fetches without it, on sites of your own"));
        }
    };
    let Verdict::Disallowed { rule } = robots.judge(url.as_url()) else {
        return None;
    };
    output::warn(
        &format!("robots.txt forbids it: {rule}"),
        Some("--ignore-robots fetches all the same, on sites of your own"),
    );
    Some(Ok(Exit::RobotsBlocked))
}

/// The error, with what can be done about it where we know something.
fn failed(error: FetchError) -> anyhow::Result<Exit> {
    let hint = match &error {
        FetchError::PrivateAddress { .. } => {
            "fetch.allow_hosts names hosts and networks of your own; --allow-private allows all"
        }
        FetchError::Tls { failure, .. } => match failure {
            TlsFailure::ClientCertificate => "fetch.client_cert and fetch.client_key name yours",
            TlsFailure::NotTls => "try it with http://",
            TlsFailure::UnknownIssuer => {
                "--ca-file trusts an authority of your own, --insecure leaves certificates unchecked"
            }
            _ => "--insecure leaves certificates unchecked",
        },
        FetchError::Dns { .. } => {
            "--resolver system asks the system's resolver instead, --dns ADDRESS:PORT another nameserver"
        }
        _ => return Err(error.into()),
    };
    Err(error).hint(hint)
}

fn read(exchange: &Exchange, config: &Config) -> anyhow::Result<Extraction> {
    let final_url = PageUrl::from_url(exchange.final_url.clone())?;
    let input = Input {
        url: &final_url,
        headers: &exchange.headers,
        body: &exchange.body,
        robots_token: &config.identity.robots_token,
        anchors: true,
        canon: &config.canon(),
        wants: config.extract,
    };
    Ok(extract(&input, &mut HrefCache::default()))
}

fn print_text(page: &Extraction) -> anyhow::Result<()> {
    match &page.text {
        Some(text) if text.ends_with('\n') || text.is_empty() => output::print(text)?,
        Some(text) => output::line(text)?,
        None => {
            let media_type = page.media_type.as_deref().unwrap_or("of an unknown type");
            output::say(format_args!("the body is {media_type}, not text"));
        }
    }
    Ok(())
}

/// The status line and the headers, as they would stand in HTTP/1.1.
fn head(exchange: &Exchange) -> String {
    let mut head = format!("HTTP {}\n", exchange.status);
    for (name, value) in &exchange.headers {
        head.push_str(&format!("{name}: {}\n", text(value)));
    }
    head.push('\n');
    head
}

/// Says what the body alone does not show.
fn remark(exchange: &Exchange) {
    if let Some(target) = exchange.redirect_target() {
        output::say(format_args!(
            "status {}: redirects to {target}",
            exchange.status
        ));
    } else if exchange.status >= 400 {
        output::say(format_args!("status {}", exchange.status));
    }
    if let Some(why) = exchange.truncated {
        output::say(format_args!("the body is not whole: {}", why.as_str()));
    }
}

fn as_json(exchange: &Exchange, page: &Extraction, selected: Option<&[Selected]>) -> Value {
    let mut headers: Map<String, Value> = Map::new();
    for name in exchange.headers.keys() {
        let values = exchange.headers.get_all(name).iter().map(text);
        headers.insert(name.to_string(), values.collect::<Vec<_>>().into());
    }
    let links: Vec<Value> = page
        .links
        .iter()
        .map(|link| json!({ "url": link.url.as_str(), "kind": link.kind.as_str(), "nofollow": link.rel.nofollow,
                           "ugc": link.rel.ugc, "sponsored": link.rel.sponsored, "rel": link.rel_text, "text": link.anchor }))
        .collect();
    let mut object = json!({
        "url": exchange.url.as_str(),
        "final_url": exchange.final_url.as_str(),
        "hops": exchange.hops,
        "http_status": exchange.status,
        "http_version": exchange.http_version(),
        "redirect_to": exchange.redirect_target(),
        "headers": headers,
        "ip": exchange.ip.map(|ip| ip.to_string()),
        "proxy": exchange.proxy.as_deref(),
        "fetch_ms": u64::try_from(exchange.elapsed.as_millis()).unwrap_or(u64::MAX),
        "wire_bytes": exchange.wire_bytes,
        "body_bytes": exchange.body.len(),
        "truncated": exchange.truncated.map(Truncated::as_str),
        "coding": exchange.coding.as_str(),
        "content_type": page.media_type,
        "charset": page.charset,
        "charset_from": page.charset_from.map(CharsetFrom::as_str),
        "title": page.title,
        "description": page.description,
        "h1": page.h1,
        "canonical_url": page.canonical_url,
        "robots": page.robots,
        "nofollow": page.nofollow,
        "signals": signals_json(page, None).and_then(|signals| serde_json::from_str::<Value>(&signals).ok()),
        "lang": page.lang,
        "links": links,
        "links_excess": page.links_excess,
    });
    let (key, value) = match selected {
        Some(selected) => ("selected", selected.iter().map(element).collect()),
        None => ("text", json!(page.text)),
    };
    object[key] = value;
    object
}

fn element(selected: &Selected) -> Value {
    let attributes: Map<String, Value> = selected
        .attributes
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    json!({
        "element": selected.element,
        "attributes": attributes,
        "text": selected.text,
        "html": selected.html,
    })
}
