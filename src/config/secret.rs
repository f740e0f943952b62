//! Values that are secrets: written out, or the place where they stand.

use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use toml::Value;
use toml::de::DeValue;

use super::Setting;

/// What is shown of a secret that was written out.
pub(super) const REDACTED: &str = "***";

/// A secret, or where it is to be had: `env:NAME` or `file:/path`.
///
/// The place is looked up when requests are about to be made, so that a command that makes none needs no secrets.
#[derive(Debug, Clone)]
pub enum Secret {
    /// The secret itself.
    Literal(SecretString),
    /// A variable of the environment.
    Variable(String),
    /// A file. A line break at its end does not count.
    File(PathBuf),
}

/// Looks up a variable of the environment.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Secret {
    /// Tells the places from the secret itself.
    pub fn of(text: &str) -> Secret {
        match text.split_once(':') {
            Some(("env", name)) => Secret::Variable(name.to_owned()),
            Some(("file", path)) => Secret::File(path.into()),
            _ => Secret::Literal(text.into()),
        }
    }

    /// Returns the secret, from where it stands.
    ///
    /// # Errors
    ///
    /// What is missing, in words; never a part of a secret.
    pub fn reveal(&self, variables: Variables<'_>) -> Result<SecretString, String> {
        match self {
            Secret::Literal(secret) => Ok(secret.clone()),
            Secret::Variable(name) => match variables(name) {
                Some(text) => Ok(text.into()),
                None => Err(format!("the variable {name} is not set")),
            },
            Secret::File(path) => read(path),
        }
    }
}

fn read(path: &Path) -> Result<SecretString, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).into())
}

impl fmt::Display for Secret {
    /// The place; nothing of a secret that was written out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Literal(_) => f.write_str(REDACTED),
            Secret::Variable(name) => write!(f, "env:{name}"),
            Secret::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl Setting for Secret {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        // The value itself stays out of the complaint.
        value.as_str().map(Secret::of).ok_or_else(|| {
            format!(
                "expected a text in quotes, \"env:NAME\" or \"file:/path\", found a {}",
                value.type_str()
            )
        })
    }

    fn write(&self) -> Value {
        Value::String(self.to_string())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Secret::Literal(a), Secret::Literal(b)) => a.expose_secret() == b.expose_secret(),
            (Secret::Variable(a), Secret::Variable(b)) => a == b,
            (Secret::File(a), Secret::File(b)) => a == b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_stands_in_the_value_in_a_variable_or_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        std::fs::write(&path, "hunter2\r\n").unwrap();
        let none = |_: &str| None;
        let some = |name: &str| (name == "TOKEN").then(|| "hunter2".to_owned());
        let reveal = |text: &str, variables: Variables<'_>| {
            Secret::of(text)
                .reveal(variables)
                .map(|secret| secret.expose_secret().to_owned())
        };
        assert_eq!(reveal("hunter2", &none).as_deref(), Ok("hunter2"));
        assert_eq!(reveal("env:TOKEN", &some).as_deref(), Ok("hunter2"));
        let file = format!("file:{}", path.display());
        assert_eq!(reveal(&file, &none).as_deref(), Ok("hunter2"));
        assert!(reveal("env:TOKEN", &none).unwrap_err().contains("TOKEN"));
        assert!(
            reveal("file:/no/such", &none)
                .unwrap_err()
                .contains("/no/such")
        );
    }

    #[test]
    fn a_place_is_shown_and_a_secret_is_not() {
        for (text, shown) in [
            ("hunter2", "***"),
            ("env:TOKEN", "env:TOKEN"),
            ("file:/p", "file:/p"),
        ] {
            assert_eq!(Secret::of(text).write(), Value::String(shown.into()));
            assert!(!format!("{:?}", Secret::of(text)).contains("hunter2"));
        }
    }
}
