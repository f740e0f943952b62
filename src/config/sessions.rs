//! What requests carry besides our own headers: headers, logins and cookies, secrets included.

use std::path::Path;

use http::HeaderMap;

use super::secret::Variables;
use super::{Config, Problem, Problems};
use crate::fetch::{Cookie, CookieFile, HostRules, Jars};

/// Bad lines of a cookie file that are told: a wrong file has nothing but such.
const TOLD: usize = 20;

/// What requests carry, with all secrets at hand.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    /// To all hosts.
    pub headers: HeaderMap,
    /// To some hosts only.
    pub hosts: HostRules,
    /// Of the operator's file.
    pub cookies: Vec<Cookie>,
    /// Where hosts keep theirs.
    pub jars: Jars,
}

impl Config {
    /// Looks up all secrets and reads the cookie file; `now` in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Everything that cannot be had or read.
    pub fn sessions(&self, variables: Variables<'_>, now: i64) -> Result<Sessions, Problems> {
        let mut problems = Vec::new();
        let headers = self.fetch.headers.reveal(variables);
        let headers = headers.unwrap_or_else(|messages| {
            problems.extend(messages.into_iter().map(|message| Problem {
                place: None,
                message: format!("fetch.headers: {message}"),
                hint: Some("a value is written out, or env:NAME, or file:/path".to_owned()),
            }));
            HeaderMap::new()
        });
        let hosts = self.host_rules(variables).unwrap_or_else(|found| {
            problems.extend(found.0);
            HostRules::default()
        });
        let cookies = match &self.fetch.cookie_file {
            Some(path) => cookies(path, now).unwrap_or_else(|found| {
                problems.extend(found);
                Vec::new()
            }),
            None => Vec::new(),
        };
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok(Sessions {
            headers,
            hosts,
            cookies,
            jars: Jars::default(),
        })
    }
}

fn cookies(path: &Path, now: i64) -> Result<Vec<Cookie>, Vec<Problem>> {
    let problem = |place: String, message: String, hint: Option<&str>| Problem {
        place: Some(place),
        message,
        hint: hint.map(str::to_owned),
    };
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the cookie file: {error}");
        vec![problem(shown.to_string(), message, None)]
    })?;
    let file = CookieFile::read(&text, now);
    let mut problems: Vec<Problem> = file
        .bad
        .iter()
        .take(TOLD)
        .map(|(line, message)| problem(format!("{shown}:{line}"), message.clone(), None))
        .collect();
    if file.bad.len() > TOLD {
        let more = format!("and {} more bad lines", file.bad.len() - TOLD);
        problems.push(problem(shown.to_string(), more, None));
    }
    if let Some(last) = problems.last_mut() {
        last.hint = Some("a cookie file has Netscape's form, as curl -c writes it".to_owned());
    } else if file.cookies.is_empty() && file.over > 0 {
        let message = format!("all its {} cookies have run out", file.over);
        let hint = Some("export them anew from the browser that is logged in");
        problems.push(problem(shown.to_string(), message, hint));
    } else if file.cookies.is_empty() {
        let message = "there is no cookie in it".to_owned();
        let hint = Some("without one leave fetch.cookie_file out; a pipe can be read only once");
        problems.push(problem(shown.to_string(), message, hint));
    }
    if problems.is_empty() {
        Ok(file.cookies)
    } else {
        Err(problems)
    }
}
