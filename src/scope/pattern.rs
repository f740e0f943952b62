//! What the operator's rules compare: host patterns, globs and regexes. All of them take time in proportion to the URL.

use std::borrow::Cow;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use url::{Position, Url};

use crate::canon::{self, HostKey, PageUrl};

/// Memory of one compiled pattern, at most; the default of the crate, 10 MiB, times 500 rules would be too much.
const COMPILED_BYTES: usize = 256 << 10;

/// Compiles a regex that searches in a URL.
pub(super) fn regex(text: &str) -> Result<Regex, String> {
    if text.is_empty() {
        return Err("an empty regex is found in every URL; write what is to be found".to_owned());
    }
    if let Some(odd) = text.chars().find(|c| !c.is_ascii()) {
        return Err(format!(
            "no URL has {odd:?} in it; write it as URLs do, in a path or query as {}, in a host as xn--…",
            canon::percent_encoded(odd.encode_utf8(&mut [0; 4]))
        ));
    }
    RegexBuilder::new(text)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                format!(
                    "the regex takes more than {} KiB compiled",
                    COMPILED_BYTES >> 10
                )
            }
            // The crate draws a picture of several lines; the last says what it is.
            other => {
                let said = other.to_string();
                let last = said.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        })
}

/// Hosts: `example.org` and `example.org:8080` for one, `*.example.org` for all below that name, `*` for all.
///
/// Without a port all ports are meant; http and https alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// With its first dot where all below are meant; empty for all.
    name: String,
    port: Option<u16>,
}

impl HostPattern {
    /// Whether a host is meant.
    pub fn covers(&self, host: &HostKey) -> bool {
        let name = host.host();
        let named = match self.name.starts_with('.') {
            true => name.len() > self.name.len() && name.ends_with(&self.name),
            false => self.name.is_empty() || name == self.name,
        };
        named && self.port.is_none_or(|port| port == host.port())
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPattern, String> {
        let refuse = || {
            format!("{text:?} is no host; write example.org, example.org:8080, *.example.org or *")
        };
        if text == "*" {
            return Ok(HostPattern {
                name: String::new(),
                port: None,
            });
        }
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (".", rest),
            None => ("", text),
        };
        if rest.contains(['/', '*', '?', '#', '@']) || rest.is_empty() {
            return Err(refuse());
        }
        // The parser's own spelling of the name (IDNA, IPv6), with a port that it would leave out kept.
        let url = Url::parse(&format!("ftp://{rest}/")).map_err(|_| refuse())?;
        let http = Url::parse(&format!("http://{rest}/")).map_err(|_| refuse())?;
        let name = &http[Position::BeforeHost..Position::AfterHost];
        let port = http.port().or(url.port());
        Ok(HostPattern {
            name: format!("{below}{name}"),
            port,
        })
    }
}

/// A glob: `*` is anything within a segment, `**` anything, `{a,b}` one of several, `[a-z]` a character.
///
/// It covers all of what it is compared with: the URL where it has `://`; the path where it begins with `/` or `**`, with
/// the query if there is a `?` in the glob, which stands for itself; else the last segment of the path, as in `*.pdf`. Paths are compared in their
/// one form, so `/~a/**` and `/%7Ea/**` are the same glob; letters beyond ASCII are escaped as in a URL.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    regex: Regex,
    part: Part,
    has_query: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Url,
    Path,
    File,
}

impl Glob {
    pub(super) fn new(text: &str) -> Result<Glob, String> {
        let part = if text.contains("://") {
            Part::Url
        } else if text.starts_with('/') || text.starts_with("**") {
            Part::Path
        } else if text.contains('/') {
            return Err(
                "a glob begins with / (a path), has :// (a whole URL), or no / at all (a file name)"
                    .to_owned(),
            );
        } else if text.is_empty() {
            return Err("an empty glob covers nothing; write a pattern like /print/**".to_owned());
        } else {
            Part::File
        };
        let host = match part {
            Part::Url => text.split('/').nth(2).unwrap_or_default(),
            Part::Path | Part::File => "",
        };
        if !host.is_ascii() {
            return Err(format!(
                "no URL has {host:?} in it; write the host as xn--…"
            ));
        }
        let sets = text.split('[').skip(1);
        if let Some(set) = sets
            .filter_map(|set| set.split_once(']'))
            .map(|(set, _)| set)
            .find(|set| !set.is_ascii())
        {
            return Err(format!(
                "the glob has a set [{set}] of other than letters, digits and -._~%"
            ));
        }
        // As the parser of URLs writes what may not stand in them.
        let text = text.replace(' ', "%20");
        let text = &*canon::percent_encoded(&text);
        Ok(Glob {
            regex: regex(&translated(text)?)?,
            part,
            has_query: text.contains('?'),
        })
    }

    pub(super) fn matches(&self, url: &PageUrl) -> bool {
        let path = url.canonical_path();
        let url = url.as_url();
        let before = match self.part {
            Part::Url => &url[..Position::BeforePath],
            Part::Path | Part::File => "",
        };
        let path = match self.part {
            Part::Url | Part::Path => &*path,
            Part::File => &path[path.rfind('/').map_or(0, |slash| slash + 1)..],
        };
        let query = match self.has_query {
            true => &url[Position::AfterPath..Position::AfterQuery],
            false => "",
        };
        let compared = match (before, query) {
            ("", "") => Cow::Borrowed(path),
            _ => Cow::Owned([before, path, query].concat()),
        };
        self.regex.is_match(&compared)
    }
}

/// A glob as a regex.
fn translated(glob: &str) -> Result<String, String> {
    let mut out = String::from("^(?:");
    let mut open = false;
    let mut rest = glob;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '*' => match rest.strip_prefix('*') {
                Some(after) => {
                    rest = after;
                    out.push_str(".*");
                }
                None => out.push_str("[^/]*"),
            },
            '{' if !open => {
                open = true;
                out.push_str("(?:");
            }
            ',' if open => out.push('|'),
            '}' if open => {
                open = false;
                out.push(')');
            }
            '[' => {
                let end = rest
                    .find(']')
                    .ok_or("the glob has a [ without its ]; %5B is a bracket in a URL")?;
                let (set, after) = rest.split_at(end);
                let (not, set) = match set.strip_prefix(['!', '^']) {
                    Some(set) => ("^", set),
                    None => ("", set),
                };
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
                if set.is_empty() || !set.chars().all(is_plain) {
                    return Err(format!(
                        "the glob has a set [{set}] of other than letters, digits and -._~%"
                    ));
                }
                out.push_str(&format!("[{not}{set}]"));
                rest = &after[1..];
            }
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    if open {
        return Err("the glob has a { without its }; %7B is a brace in a URL".to_owned());
    }
    out.push_str(")$");
    Ok(out)
}
