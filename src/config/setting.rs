//! How a value of each type is read and shown.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use secrecy::{ExposeSecret, SecretString};
use toml::Value;
use toml::de::DeValue;
use url::Url;

use super::LogFormat;
use crate::canon::{IgnoreParams, Listed};
use crate::crawl::{LinkGraph, SitemapUse};
use crate::fetch::{HostAddresses, KeepCookies, OwnHost, Resolver, Rotation};
use crate::schedule::Order;
use crate::scope::{Rule, RuleError, ScopeKind};

/// The word for "not set", since TOML has none.
const NONE: &str = "none";

/// A type that a key can have.
pub trait Setting: Sized {
    /// Reads it from a TOML value.
    ///
    /// # Errors
    ///
    /// What was expected and what was found, in words.
    fn read(value: &DeValue<'_>) -> Result<Self, String>;

    /// Writes it as a TOML value; secrets are redacted.
    fn write(&self) -> Value;

    /// Reads it from a text of the environment or a flag: as a string, else as the TOML value that the text spells.
    ///
    /// # Errors
    ///
    /// As [`Setting::read`].
    fn read_text(text: &str) -> Result<Self, String> {
        let as_string = Self::read(&DeValue::String(text.into()));
        as_string.or_else(|complaint| match DeValue::parse(text) {
            Ok(value) => Self::read(value.get_ref()),
            Err(_) => Err(complaint),
        })
    }
}

pub(super) fn expected<T>(what: &str, found: &DeValue<'_>) -> Result<T, String> {
    Err(match found {
        DeValue::String(text) => format!("expected {what}, found \"{text}\""),
        DeValue::Integer(number) => format!("expected {what}, found {number}"),
        DeValue::Float(number) => format!("expected {what}, found {number}"),
        DeValue::Boolean(truth) => format!("expected {what}, found {truth}"),
        other => format!("expected {what}, found a {}", other.type_str()),
    })
}

/// The same where the value may be a secret, or hold one: it is not repeated.
pub(super) fn expected_of_secret<T>(what: &str, found: &DeValue<'_>) -> Result<T, String> {
    Err(format!("expected {what}, found a {}", found.type_str()))
}

fn integer(value: &DeValue<'_>) -> Option<i128> {
    let DeValue::Integer(number) = value else {
        return None;
    };
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

macro_rules! whole_numbers {
    ($($type:ty),*) => { $(
        impl Setting for $type {
            fn read(value: &DeValue<'_>) -> Result<Self, String> {
                match integer(value).map(<$type>::try_from) {
                    Some(Ok(number)) => Ok(number),
                    _ => expected(&format!("a whole number from 0 to {}", <$type>::MAX), value),
                }
            }

            fn write(&self) -> Value {
                i64::try_from(*self).map_or_else(|_| Value::String(self.to_string()), Value::Integer)
            }
        }
    )* };
}

whole_numbers!(u16, u32, u64, usize);

impl Setting for f64 {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let number = match value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            other => integer(other).map(|number| number as f64),
        };
        number
            .filter(|number: &f64| number.is_finite())
            .map_or_else(|| expected("a number", value), Ok)
    }

    fn write(&self) -> Value {
        Value::Float(*self)
    }
}

impl Setting for bool {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value
            .as_bool()
            .map_or_else(|| expected("true or false", value), Ok)
    }

    fn write(&self) -> Value {
        Value::Boolean(*self)
    }
}

impl Setting for String {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map_or_else(
            || expected("a text in quotes", value),
            |text| Ok(text.to_owned()),
        )
    }

    fn write(&self) -> Value {
        Value::String(self.clone())
    }
}

impl Setting for PathBuf {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some(path) if !path.is_empty() => Ok(path.into()),
            _ => expected("a path", value),
        }
    }

    fn write(&self) -> Value {
        Value::String(self.display().to_string())
    }
}

impl Setting for Duration {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let parsed = value.as_str().map(humantime::parse_duration);
        match parsed {
            Some(Ok(duration)) => Ok(duration),
            _ => expected("a duration like \"500ms\", \"30s\" or \"2m\"", value),
        }
    }

    fn write(&self) -> Value {
        Value::String(humantime::format_duration(*self).to_string())
    }
}

impl Setting for ByteSize {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        // A bare number would leave its unit to guessing.
        let parsed = value
            .as_str()
            .filter(|text| text.ends_with(['b', 'B']))
            .map(str::parse);
        match parsed {
            Some(Ok(size)) => Ok(size),
            _ => expected("a size like \"512KiB\" or \"10MiB\"", value),
        }
    }

    fn write(&self) -> Value {
        // In the largest unit that is exact: what is shown can be written into a file.
        let bytes = self.as_u64();
        let units = [
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
            ("B", 1),
        ];
        let exact = units
            .into_iter()
            .find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
        let (unit, size) = exact.unwrap_or(("B", 1));
        Value::String(format!("{}{unit}", bytes / size))
    }
}

impl Setting for SecretString {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map_or_else(
            || expected_of_secret("a text in quotes", value),
            |text| Ok(text.into()),
        )
    }

    fn write(&self) -> Value {
        Value::String(redact(self.expose_secret()))
    }
}

/// Returns a URL, or a `label=URL`, without its password; `***` for what is neither. A user name that stands alone is a proxy's key, but
/// for a database's, which is known by its user.
pub(super) fn redact(secret: &str) -> String {
    let (label, address) = split_label(secret);
    let Some(mut url) = Url::parse(address).ok().filter(Url::has_host) else {
        return "***".into();
    };
    let is_database = matches!(url.scheme(), "postgres" | "postgresql");
    let has_key = !url.username().is_empty() && url.password().is_none();
    if has_key && !is_database && url.set_username("***").is_err() {
        return "***".into();
    }
    if url.password().is_some() && url.set_password(Some("***")).is_err() {
        return "***".into();
    }
    // libpq's URLs may carry it as a parameter as well.
    if url
        .query()
        .is_some_and(|query| query.to_ascii_lowercase().contains("password"))
    {
        url.set_query(Some("***"));
    }
    format!("{label}{url}")
}

/// Splits `label=URL` behind the `=`; without a label the first part is empty. What holds a `:` or an `@` is no label, but a URL without
/// its scheme, and the `=` perhaps a password's.
pub(super) fn split_label(text: &str) -> (&str, &str) {
    let scheme = text.find("://").unwrap_or(text.len());
    text[..scheme]
        .find('=')
        .filter(|at| !text[..*at].contains([':', '@']))
        .map_or(("", text), |at| text.split_at(at + 1))
}

impl<T: Setting> Setting for Option<T> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some(NONE) => Ok(None),
            _ => T::read(value).map(Some),
        }
    }

    fn write(&self) -> Value {
        self.as_ref()
            .map_or_else(|| Value::String(NONE.into()), Setting::write)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_array() {
            Some(values) => values
                .iter()
                .map(|value| T::read(value.get_ref()))
                .collect(),
            None => expected("a list like [\"30s\", \"2m\"]", value),
        }
    }

    fn write(&self) -> Value {
        Value::Array(self.iter().map(Setting::write).collect())
    }
}

impl Setting for ScopeKind {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let parsed = value.as_str().map(str::parse);
        match parsed {
            Some(Ok(kind)) => Ok(kind),
            _ => expected("one of \"host\", \"site\", \"prefix\", \"any\"", value),
        }
    }

    fn write(&self) -> Value {
        Value::String(self.to_string())
    }
}

impl Setting for Rule {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some(text) => text.parse().map_err(|error: RuleError| error.to_string()),
            None => expected("a rule like \"exclude glob /print/**\"", value),
        }
    }

    fn write(&self) -> Value {
        Value::String(self.as_str().to_owned())
    }
}

/// Types that are read from a text of their own and say themselves what is wrong with one.
macro_rules! texts {
    ($($type:ty: $what:literal),*) => { $(
        impl Setting for $type {
            fn read(value: &DeValue<'_>) -> Result<Self, String> {
                match value.as_str() {
                    Some(text) => text.parse(),
                    None => expected($what, value),
                }
            }

            fn write(&self) -> Value {
                Value::String(self.to_string())
            }
        }
    )* };
}

texts!(
    IgnoreParams: "a text like \"example.org: ref, from*\"",
    Resolver: "\"hickory\", \"system\" or the address:port of a nameserver",
    OwnHost: "a host, *.host, address or network like \"10.0.0.0/8\"",
    LinkGraph: "one of \"none\", \"internal\", \"all\"",
    HostAddresses: "a text like \"host.example:10.0.0.1\""
);

/// A closed set of words.
macro_rules! words {
    ($type:ident, $($word:literal => $variant:ident),*) => {
        impl Setting for $type {
            fn read(value: &DeValue<'_>) -> Result<Self, String> {
                match value.as_str() {
                    $(Some($word) => Ok($type::$variant),)*
                    _ => expected(&format!("one of {}", [$(concat!('"', $word, '"')),*].join(", ")), value),
                }
            }

            fn write(&self) -> Value {
                Value::String(match self { $($type::$variant => $word),* }.into())
            }
        }
    };
}

impl Setting for Listed {
    /// A truth is read as well: yes is the list that this version of the program has.
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let word = match value {
            DeValue::Boolean(truth) => Some(if *truth { "true" } else { "false" }),
            other => other.as_str(),
        };
        match word.and_then(Listed::of) {
            Some(listed) => Ok(listed),
            None => expected("\"off\" or \"v1\"", value),
        }
    }

    fn write(&self) -> Value {
        Value::String(self.as_str().into())
    }
}

words!(Rotation, "round-robin" => RoundRobin, "sticky" => Sticky, "random" => Random);
words!(SitemapUse, "auto" => Auto, "include" => Include, "only" => Only, "skip" => Skip);
words!(Order, "breadth-first" => BreadthFirst, "depth-first" => DepthFirst, "seeds" => Seeds, "sitemap" => Sitemap, "in-links" => InLinks, "random" => Random);
words!(LogFormat, "text" => Text, "json" => Json);
words!(KeepCookies, "off" => Off, "host" => Host);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_a_string_or_as_the_value_it_spells() {
        assert_eq!(String::read_text("true"), Ok("true".into()));
        assert_eq!(bool::read_text("true"), Ok(true));
        assert_eq!(u32::read_text("8"), Ok(8));
        assert_eq!(Option::<u64>::read_text("none"), Ok(None));
        assert_eq!(Duration::read_text("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(
            Vec::<Duration>::read_text(r#"["1s", "2s"]"#).map(|waits| waits.len()),
            Ok(2)
        );
        assert!(u16::read_text("70000").is_err());
        assert!(u32::read_text("-1").is_err());
    }

    #[test]
    fn a_number_without_a_unit_is_neither_a_duration_nor_a_size() {
        assert!(Duration::read_text("10").is_err());
        assert!(ByteSize::read_text("10").is_err());
        assert_eq!(ByteSize::read_text("10MiB"), Ok(ByteSize::mib(10)));
    }

    #[test]
    fn no_password_is_shown() {
        for secret in [
            "postgres://me:hunter2@db.example/crawl",
            "postgres://db.example/crawl?user=me&password=hunter2",
            "host=db password=hunter2",
            "socks5://me:hunter2@proxy.example:1080",
            "home=socks5://me:hunter2@proxy.example:1080",
            "http://hunter2@proxy.example:3128",
            "http://hunter2:@proxy.example:3128",
            "me:hunter2@proxy.example:3128",
            "me:hunter2=@proxy.example:3128",
        ] {
            let shown = SecretString::from(secret).write().to_string();
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(
            redact("postgres://me:hunter2@db.example/crawl"),
            "postgres://me:***@db.example/crawl"
        );
        let database = "postgres://me@db.example/crawl";
        assert_eq!(redact(database), database);
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same() {
        fn round<T: Setting + PartialEq + std::fmt::Debug>(value: T) {
            let shown = value.write().to_string();
            assert_eq!(
                T::read(DeValue::parse(&shown).unwrap().get_ref()),
                Ok(value)
            );
        }
        round(Duration::from_millis(61_500));
        round(ByteSize::kib(512));
        round(ByteSize::b(1_000_001));
        round(Some(0.25));
        round(None::<PathBuf>);
        round(vec![Duration::ZERO, Duration::from_secs(3600)]);
        round(ScopeKind::Prefix);
        round(Resolver::System);
        round(Resolver::At("127.0.0.1:53".parse().unwrap()));
        round(vec!["10.0.0.0/8".parse::<OwnHost>().unwrap()]);
        round(vec!["a.test:80:[::1]".parse::<HostAddresses>().unwrap()]);
        round(true);
    }
}
