//! What a key leaves out beside the rules that always hold: session ids, tracking parameters, parameters of an
//! operator's list.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use url::Url;

use super::{listed, rules};

/// Whether what a list names is left out of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Listed {
    /// It stays.
    #[default]
    Off,
    /// The list of version 1 counts ([`listed::LISTS`](super::LISTS)).
    V1,
}

impl Listed {
    /// The word for it in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Listed::Off => "off",
            Listed::V1 => "v1",
        }
    }

    /// The list of a word; that of this version of the program for `true`.
    pub fn of(word: &str) -> Option<Listed> {
        match word {
            "off" | "false" => Some(Listed::Off),
            "v1" | "on" | "true" => Some(Listed::V1),
            _ => None,
        }
    }
}

/// Which rules a crawl has beside those that always hold. Default: none.
///
/// They belong to the crawl: the digests in its database depend on them, so all machines must have the same, for good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CanonOptions {
    /// Session ids: `;jsessionid=…` in a segment, `PHPSESSID=…` among the pairs, `(S(…))` as a segment.
    pub session_ids: Listed,
    /// Tracking parameters: `utm_*`, `gclid`, `fbclid`…
    pub tracking: Listed,
    /// Parameters that say nothing on some hosts.
    pub ignore: Vec<IgnoreParams>,
}

/// The rules under which URLs are compared. Cheap to clone, and free where only those hold that always do.
///
/// [`PageUrl::digest`](super::PageUrl::digest) asks for one, so that no caller can forget it.
#[derive(Clone, Default)]
pub struct Canon(Option<Arc<Optional>>);

/// The rules that always hold, and no others.
pub static BASE: Canon = Canon(None);

struct Optional {
    options: CanonOptions,
    /// Tells rules apart, never 0: a digest is kept with the URL, and counts under the rules it was made by.
    mark: u64,
}

impl Canon {
    /// The rules of these options.
    pub fn new(options: CanonOptions) -> Canon {
        if options == CanonOptions::default() {
            return Canon(None);
        }
        let hash = Sha256::digest(format!("{options:?}"));
        let mut mark = [0; 8];
        mark.copy_from_slice(&hash[..8]);
        Canon(Some(Arc::new(Optional {
            options,
            mark: u64::from_be_bytes(mark) | 1,
        })))
    }

    pub(super) fn mark(&self) -> u64 {
        self.0.as_ref().map_or(0, |optional| optional.mark)
    }

    pub(super) fn options(&self) -> Option<&CanonOptions> {
        self.0.as_ref().map(|optional| &optional.options)
    }
}

impl PartialEq for Canon {
    fn eq(&self, other: &Canon) -> bool {
        self.options() == other.options()
    }
}

impl Eq for Canon {}

impl fmt::Debug for Canon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Canon").field(&self.options()).finish()
    }
}

impl CanonOptions {
    /// The path without session ids; it is in its one form already, and stays so.
    pub(super) fn path(&self, path: &str, out: &mut String) {
        if self.session_ids == Listed::Off || !path.contains([';', '(']) {
            out.push_str(path);
            return;
        }
        let mut segments = path.split('/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            if listed::is_asp_net(segment) {
                if segments.peek().is_none() {
                    out.push('/');
                }
                continue;
            }
            out.push('/');
            let kept = out.len();
            push_without_sessions(segment, out);
            // It would be resolved as a step when the key is read again: such a segment is nobody's session.
            if matches!(&out[kept..], "." | "..") {
                out.truncate(kept);
                out.push_str(segment);
            }
        }
    }

    /// Drops the pairs that say nothing of the page.
    pub(super) fn pairs(&self, url: &Url, pairs: &mut Vec<&str>) {
        let ignore: Vec<&IgnoreParams> = self
            .ignore
            .iter()
            .filter(|ignore| ignore.hosts.cover(url))
            .collect();
        let mut cold_fusion = [false; 2];
        if self.session_ids != Listed::Off {
            for which in pairs
                .iter()
                .filter_map(|pair| listed::cold_fusion(parts(pair).0))
            {
                cold_fusion[which] = true;
            }
        }
        pairs.retain(|pair| {
            let (name, value) = parts(pair);
            let is_session = self.session_ids != Listed::Off
                && (listed::is_session(name, value)
                    || (cold_fusion == [true; 2] && listed::cold_fusion(name).is_some()));
            let is_tracking = self.tracking != Listed::Off && listed::is_tracking(name);
            let is_ignored = ignore.iter().any(|ignore| ignore.names(name));
            !is_session && !is_tracking && !is_ignored
        });
    }
}

/// A segment without those of its parameters that are session ids (RFC 3986 §3.3: they belong to the segment).
fn push_without_sessions(segment: &str, out: &mut String) {
    for (n, part) in segment.split(';').enumerate() {
        let (name, value) = parts(part);
        if n > 0 && listed::is_session(name, value) {
            continue;
        }
        if n > 0 {
            out.push(';');
        }
        out.push_str(part);
    }
}

fn parts(pair: &str) -> (&str, &str) {
    pair.split_once('=').unwrap_or((pair, ""))
}

/// Parameters that say nothing on some hosts: `example.org: ref, from*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreParams {
    hosts: Hosts,
    /// In the one form of their escapes; a star at the end is any rest.
    names: Vec<String>,
}

/// Hosts by name, over http and https.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// Without the root's dot.
    Name {
        name: String,
        below: bool,
        port: Option<u16>,
    },
}

impl Hosts {
    fn cover(&self, url: &Url) -> bool {
        let Hosts::Name { name, below, port } = self else {
            return true;
        };
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_of_name = match below {
            false => host == name,
            true => host
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        is_of_name && port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

impl IgnoreParams {
    fn names(&self, name: &str) -> bool {
        self.names.iter().any(|own| match own.strip_suffix('*') {
            Some(head) => name.starts_with(head),
            None => name == own,
        })
    }
}

impl fmt::Display for IgnoreParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::All => f.write_str("*")?,
            Hosts::Name { name, below, port } => {
                f.write_str(if *below { "*." } else { "" })?;
                f.write_str(name)?;
                if let Some(port) = port {
                    write!(f, ":{port}")?;
                }
            }
        }
        write!(f, ": {}", self.names.join(", "))
    }
}

impl FromStr for IgnoreParams {
    type Err = String;

    /// Reads `HOST: NAME, NAME*`. The host is a name or an address at any port, or with one; `*.example.org` is each host below
    /// that name, `*` each host.
    fn from_str(text: &str) -> Result<IgnoreParams, String> {
        let no_rule = || {
            format!(
                "\"{text}\" is no rule: write \"host: name, name*\", the host may be * or *.name"
            )
        };
        // A colon may also stand before a port or in an address.
        let (hosts, names) = text
            .rsplit_once(": ")
            .or_else(|| text.rsplit_once(':'))
            .ok_or_else(no_rule)?;
        let names: Vec<String> = names
            .split(',')
            .map(|name| rules::percent_encoded(name.trim()).into_owned())
            .filter(|name| !name.is_empty())
            .collect();
        let odd = |name: &String| {
            name.contains(['&', '=', '#', '?', ' ']) || name.trim_end_matches('*').contains('*')
        };
        if names.is_empty() || names.iter().any(odd) {
            return Err(no_rule());
        }
        let hosts = hosts.trim();
        let hosts = match hosts {
            "*" => Hosts::All,
            _ => {
                let (below, host) = match hosts.strip_prefix("*.") {
                    Some(host) => (true, host),
                    None => (false, hosts),
                };
                let url = Url::parse(&format!("http://{host}/")).map_err(|_| no_rule())?;
                let name = url
                    .host_str()
                    .filter(|_| url.path() == "/" && url.username().is_empty());
                let name = name.ok_or_else(no_rule)?;
                let name = name.strip_suffix('.').unwrap_or(name);
                if name.is_empty()
                    || name.ends_with('.')
                    || host.contains(['/', '?', '#', '@', '*'])
                {
                    return Err(no_rule());
                }
                Hosts::Name {
                    name: name.to_owned(),
                    below,
                    // The parser drops the default one.
                    port: url.port().or(host.ends_with(":80").then_some(80)),
                }
            }
        };
        Ok(IgnoreParams { hosts, names })
    }
}
