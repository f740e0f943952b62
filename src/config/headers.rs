//! Request headers: a table of them, or lines like `Name: value` as the flag has them.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

use super::secret::{Secret, Variables};
use super::{Setting, setting};
use crate::fetch::header_refusal;

/// Headers by name; a value may be a secret.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headers(Vec<(HeaderName, Secret)>);

impl Headers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them has this name.
    pub fn has(&self, name: &HeaderName) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    /// Returns them with their values, which are marked as sensitive.
    ///
    /// # Errors
    ///
    /// What is missing or cannot be a header's value, one text a header.
    pub fn reveal(&self, variables: Variables<'_>) -> Result<HeaderMap, Vec<String>> {
        let mut map = HeaderMap::new();
        let mut wrong = Vec::new();
        for (name, secret) in &self.0 {
            match secret.reveal(variables).and_then(|text| value(&text)) {
                Ok(value) => {
                    map.insert(name.clone(), value);
                }
                Err(message) => wrong.push(format!("{name}: {message}")),
            }
        }
        if wrong.is_empty() {
            Ok(map)
        } else {
            Err(wrong)
        }
    }
}

/// Blanks around it are none of its own (RFC 9110 §5.5).
fn value(text: &SecretString) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text.expose_secret().trim())
        .map_err(|_| "control characters cannot stand in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn entry(name: &str, found: &DeValue<'_>) -> Result<(HeaderName, Secret), String> {
    let header = name
        .parse()
        .map_err(|_| format!("\"{name}\" is no name of a header"))?;
    named(name, header, found)
}

fn named(
    name: &str,
    header: HeaderName,
    found: &DeValue<'_>,
) -> Result<(HeaderName, Secret), String> {
    if let Some(why) = header_refusal(&header) {
        return Err(format!("{name} cannot be set: {why}"));
    }
    let secret = Secret::read(found).map_err(|message| format!("{name}: {message}"))?;
    if let Secret::Literal(text) = &secret {
        value(text).map_err(|message| format!("{name}: {message}"))?;
    }
    Ok((header, secret))
}

/// A header as HTTP writes it: `Name: value`. One that cannot be read is not repeated: any part of it may be the secret.
fn line((at, found): (usize, &DeValue<'_>)) -> Result<(HeaderName, Secret), String> {
    let text = found.as_str().unwrap_or_default();
    let read = text
        .split_once(':')
        .map(|(name, value)| (name.trim(), value.trim()))
        .and_then(|(name, value)| Some((name, name.parse().ok()?, value)));
    match read {
        Some((name, header, value)) => named(name, header, &DeValue::String(value.into())),
        None => {
            let nth = at + 1;
            Err(format!("no. {nth} is no header: write \"Name: value\""))
        }
    }
}

impl Setting for Headers {
    fn read(found: &DeValue<'_>) -> Result<Self, String> {
        let all: Vec<_> = match (found.as_table(), found.as_array()) {
            (Some(table), _) => table
                .iter()
                .map(|(name, found)| entry(name.get_ref(), found.get_ref()))
                .collect(),
            (_, Some(lines)) => {
                let lines = lines.iter().map(Spanned::get_ref).enumerate();
                lines.map(line).collect()
            }
            _ => {
                let what = "a table like { Accept-Language = \"de\" }";
                return setting::expected_of_secret(what, found);
            }
        };
        let mut headers: Vec<(HeaderName, Secret)> = Vec::new();
        let mut wrong = Vec::new();
        for read in all {
            match read {
                Ok((name, _)) if headers.iter().any(|(known, _)| *known == name) => {
                    wrong.push(format!("{name} is there twice"));
                }
                Ok(header) => headers.push(header),
                Err(message) => wrong.push(message),
            }
        }
        if wrong.is_empty() {
            Ok(Headers(headers))
        } else {
            Err(wrong.join("; "))
        }
    }

    fn write(&self) -> Value {
        let entries = self.0.iter();
        let table: Table = entries
            .map(|(name, secret)| (name.to_string(), secret.write()))
            .collect();
        Value::Table(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_stands_where_a_table_should_is_not_repeated() {
        for text in [
            "Authorization: Bearer s3cret",
            "\"X-Api-Key: s3cret\"",
            "s3cret",
            "[\"s3cret\"]",
            "[\"X-Api-Key s3cret\", \"Bearer s3cret: x\"]",
            "{ Host = \"s3cret\" }",
            "[1, \"s3cret\"]",
        ] {
            let complaint = Headers::read_text(text).unwrap_err();
            assert!(!complaint.contains("s3cret"), "{complaint}");
        }
        let complaint = Headers::read_text("[\"A: 1\", \"s3cret\"]").unwrap_err();
        assert_eq!(complaint, "no. 2 is no header: write \"Name: value\"");
    }
}
