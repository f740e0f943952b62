//! Cookie files in Netscape's form, as browsers' extensions, curl and wget write them.

use url::{Host, Url};

use super::cookie::{Cookie, Port, Seconds, has_controls};
use crate::fetch::hosts::is_public_suffix;

/// What marks a line whose cookie is hidden from scripts, and is no comment.
const HTTP_ONLY: &str = "#HttpOnly_";

/// What a file holds.
#[derive(Debug, Default)]
pub struct CookieFile {
    /// The cookies that count.
    pub cookies: Vec<Cookie>,
    /// How many are left out since their time is over.
    pub over: usize,
    /// What is wrong, each with its line, counted from 1.
    pub bad: Vec<(usize, String)>,
}

impl CookieFile {
    /// Reads the text of a file; `now` in seconds since 1970.
    ///
    /// A line has seven fields, with tabs between them: domain, whether hosts below it count too, path, whether it is for https alone,
    /// expiry in seconds since 1970 (0: none), name, value. Lines that begin with `#` are comments, but for `#HttpOnly_`.
    pub fn read(text: &str, now: i64) -> CookieFile {
        let mut file = CookieFile::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match cookie(line) {
                Ok(cookie) if cookie.is_over(now) => file.over += 1,
                Ok(cookie) => file.cookies.push(cookie),
                Err(message) => file.bad.push((index + 1, message)),
            }
        }
        file
    }
}

fn cookie(line: &str) -> Result<Cookie, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let (domain, below, path, secure, expires, name, value) = match fields[..] {
        [a, b, c, d, e, f, g] => (a, b, c, d, e, f, g),
        // An empty value at the end is lost to editors that cut blanks off.
        [a, b, c, d, e, f] => (a, b, c, d, e, f, ""),
        _ => {
            return Err(format!(
                "{} fields instead of 7, with tabs between them",
                fields.len()
            ));
        }
    };
    let (domain, is_name) = host(domain)?;
    let below = truth(below, "the second field (hosts below)")?;
    if below && is_public_suffix(&domain) {
        return Err(format!(
            "{domain} is a public suffix: hosts of many owners lie below it"
        ));
    }
    if !path.starts_with('/') {
        return Err("the path does not begin with a slash".to_owned());
    }
    let expires: Seconds = expires
        .split('.')
        .next()
        .and_then(|whole| whole.parse().ok())
        .ok_or("the expiry is no number of seconds")?;
    if name.is_empty() || name.contains(['=', ';']) || has_controls(name.as_bytes()) {
        return Err("the name is empty or has a character that no name has".to_owned());
    }
    // Not repeated: it is a secret.
    if value.contains(';') || has_controls(value.as_bytes()) {
        return Err("the value has a character that no value has".to_owned());
    }
    Ok(Cookie {
        name: name.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
        domain,
        host_only: !below || !is_name,
        path: path.as_bytes().to_vec(),
        secure: truth(secure, "the fourth field (https alone)")?,
        port: Port::Any,
        expires: (expires != 0).then_some(expires),
    })
}

fn truth(text: &str, what: &str) -> Result<bool, String> {
    match text.to_ascii_uppercase().as_str() {
        "TRUE" => Ok(true),
        "FALSE" => Ok(false),
        _ => Err(format!("{what} is neither TRUE nor FALSE")),
    }
}

fn host(text: &str) -> Result<(String, bool), String> {
    let name = text.strip_prefix('.').unwrap_or(text);
    let url = Url::parse(&format!("https://{name}/"))
        .ok()
        .filter(|url| url.port().is_none() && url.path() == "/" && url.username().is_empty());
    let host = url.as_ref().and_then(Url::host_str);
    match host {
        Some(host) if !name.ends_with(':') => {
            let host = host.strip_suffix('.').unwrap_or(host).to_owned();
            let is_name = url
                .as_ref()
                .is_some_and(|url| matches!(url.host(), Some(Host::Domain(_))));
            Ok((host, is_name))
        }
        _ => Err("the first field is no host".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::hosts::Secrecy;

    const FILE: &str = "# Netscape HTTP Cookie File\r\n\
        \n\
        .example.org\tTRUE\t/\tFALSE\t0\tall\tv1\n\
        #HttpOnly_www.example.org\tFALSE\t/docs\tTRUE\t4102444800\tone\tv=2\n\
        # www.example.org\tFALSE\t/\tFALSE\t0\tcomment\tx\n\
        old.example.org\tFALSE\t/\tFALSE\t1\told\tx\n\
        empty.example.org\tFALSE\t/\tFALSE\t0\tempty\n";

    #[test]
    fn a_file_is_read_with_its_flags_and_what_is_over_is_left_out() {
        let file = CookieFile::read(FILE, 1_000);
        assert_eq!(
            (file.cookies.len(), file.over, file.bad.len()),
            (3, 1, 0),
            "{file:?}"
        );
        let shown = |url: &str| -> Vec<String> {
            let url = Url::parse(url).unwrap();
            let secrecy = Secrecy::of(&url, true);
            let all = file
                .cookies
                .iter()
                .filter(|cookie| cookie.is_for(&url, secrecy));
            all.map(|cookie| String::from_utf8_lossy(&cookie.name).into_owned())
                .collect()
        };
        assert_eq!(shown("http://example.org:8080/"), ["all"]);
        assert_eq!(
            shown("http://www.example.org/docs/"),
            ["all"],
            "the other is for https"
        );
        assert_eq!(shown("https://www.example.org/docs/"), ["all", "one"]);
        assert_eq!(shown("https://www.example.org/"), ["all"]);
        assert_eq!(shown("https://a.www.example.org/docs/"), ["all"]);
    }

    #[test]
    fn each_bad_line_is_told_with_its_number_and_without_its_value() {
        let lines = [
            "a.example FALSE / FALSE 0 n hunter2",
            "a.example\tFALSE\t/\tFALSE\t0\tn\thunter2",
            "a/b\tFALSE\t/\tFALSE\t0\tn\thunter2",
            "a.example\tperhaps\t/\tFALSE\t0\tn\thunter2",
            "a.example\tFALSE\tx\tFALSE\t0\tn\thunter2",
            "a.example\tFALSE\t/\t1\t0\tn\thunter2",
            "a.example\tFALSE\t/\tFALSE\tnever\tn\thunter2",
            "a.example\tFALSE\t/\tFALSE\t0\t\thunter2",
            "a.example\tFALSE\t/\tFALSE\t0\tn\thunter2;",
            ".co.uk\tTRUE\t/\tFALSE\t0\tn\thunter2",
            "\tFALSE\t/\tFALSE\t0\tn\thunter2",
        ];
        let file = CookieFile::read(&lines.join("\n"), 1_000);
        let numbers: Vec<usize> = file.bad.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(!format!("{file:?}").contains("hunter2"));
    }
}
