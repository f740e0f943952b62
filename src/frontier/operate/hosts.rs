//! What an operator does to hosts.

use std::{fmt, str::FromStr, time::Duration};

use super::{OperateError, Operator, Result};
use crate::{
    canon::{HostKey, PageUrl},
    frontier::{
        HostId,
        tries::{once, run},
    },
};

/// How many hosts of a similar name an error names.
const NEAR: usize = 3;

/// A host as an operator finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHost {
    /// Its row.
    pub id: HostId,
    /// Scheme, host and port.
    pub authority: String,
    /// Whether an operator parked it.
    pub is_parked: bool,
    /// Whether it was given up.
    pub is_given_up: bool,
    /// Whether tasks of it are new, as far as is known.
    pub has_new: bool,
    /// Its class.
    pub class: Class,
    /// Its own delay; `None`: the crawl's.
    pub delay: Option<Duration>,
    /// The Crawl-delay of its robots.txt.
    pub crawl_delay: Option<Duration>,
}

/// In which order hosts that are ready are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Before all others.
    High,
    /// As usual.
    Normal,
    /// When nothing else is ready.
    Low,
}

impl Class {
    fn number(self) -> i16 {
        match self {
            Class::High => 0,
            Class::Normal => 1,
            Class::Low => 2,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::High => "high",
            Class::Normal => "normal",
            Class::Low => "low",
        })
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Class, String> {
        match text {
            "high" | "0" => Ok(Class::High),
            "normal" | "1" => Ok(Class::Normal),
            "low" | "2" => Ok(Class::Low),
            _ => Err(format!("{text:?} is none of high, normal, low")),
        }
    }
}

impl Operator {
    /// Finds what an operator may mean by a host: `https://example.org:8443` or a URL is one host, `example.org:8443` both schemes of it,
    /// `example.org` all its schemes and ports. Never empty.
    ///
    /// # Errors
    /// [`OperateError::UnknownHost`] with names that are near, [`OperateError::NotAHost`], or a database that will not do.
    pub async fn find_hosts(&self, host: &str) -> Result<Vec<KnownHost>> {
        let (names, beginnings) = meant(host)?;
        let (exact, open): (&[String], &[String]) = (&names, &beginnings);
        let rows = run!(&self.frontier, "known_hosts", async |db| {
            sqlx::query_file!("src/frontier/sql/known_hosts.sql", exact, open)
                .fetch_all(db)
                .await
        })?;
        if rows.is_empty() {
            let some = run!(&self.frontier, "some_hosts", async |db| {
                sqlx::query_file_scalar!("src/frontier/sql/some_hosts.sql")
                    .fetch_all(db)
                    .await
            })?;
            return Err(OperateError::UnknownHost {
                host: host.to_owned(),
                near: near(&names[0], some),
            });
        }
        let hosts = rows.into_iter().map(|row| KnownHost {
            id: HostId(row.id),
            authority: row.authority,
            is_parked: row.parked,
            is_given_up: row.given_up,
            has_new: row.has_new,
            class: match row.priority {
                ..=0 => Class::High,
                1 => Class::Normal,
                2.. => Class::Low,
            },
            delay: row.delay_ms.map(span),
            crawl_delay: row.crawl_delay_ms.map(span),
        });
        Ok(hosts.collect())
    }

    /// Parks hosts: nobody claims from them until they are unparked. What is claimed already is visited still. Answers those that were not
    /// parked before.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn park(&self, hosts: &[KnownHost], note: &str) -> Result<Vec<HostId>> {
        let ids = ids(hosts);
        let ids = &ids;
        let parked = run!(&self.frontier, "operator_parks", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/operator_parks.sql", ids, note)
                .fetch_all(db)
                .await
        })?;
        Ok(parked.into_iter().map(HostId).collect())
    }

    /// Ends what [`Operator::park`] began. A Retry-After, a breaker's pause and a delay are left alone. Answers those that were parked.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn unpark(&self, hosts: &[KnownHost]) -> Result<Vec<HostId>> {
        let ids = ids(hosts);
        let ids = &ids;
        let unparked = run!(&self.frontier, "operator_unparks", async |db| {
            sqlx::query_file_scalar!("src/frontier/sql/operator_unparks.sql", ids)
                .fetch_all(db)
                .await
        })?;
        Ok(unparked.into_iter().map(HostId).collect())
    }

    /// Puts hosts into a class. Answers those that were in another one.
    ///
    /// # Errors
    /// A database that will not do.
    pub async fn reprioritise_hosts(
        &self,
        hosts: &[KnownHost],
        class: Class,
    ) -> Result<Vec<HostId>> {
        let ids = ids(hosts);
        let ids = &ids;
        let moved = run!(&self.frontier, "reprioritise_hosts", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/reprioritise_hosts.sql",
                ids,
                class.number()
            )
            .fetch_all(db)
            .await
        })?;
        Ok(moved.into_iter().map(HostId).collect())
    }

    /// Gives hosts a delay of their own, or the crawl's (or robots.txt's) again: see [`Frontier::set_delay`](crate::frontier::Frontier::set_delay).
    ///
    /// # Errors
    /// A database that will not do. Hosts before the one that failed have it.
    pub async fn set_delay(&self, hosts: &[KnownHost], delay: Option<Duration>) -> Result {
        for host in hosts {
            self.frontier.set_delay(host.id, delay).await?;
        }
        Ok(())
    }
}

/// Authorities that are meant, and what they may begin with.
fn meant(host: &str) -> Result<(Vec<String>, Vec<String>)> {
    let key = |text: &str| match PageUrl::parse(text) {
        Ok(url) => Ok(url.host().clone()),
        Err(source) => Err(OperateError::NotAHost {
            host: host.to_owned(),
            source,
        }),
    };
    let text = host.trim();
    if text.contains("://") {
        return Ok((vec![key(text)?.as_str().to_owned()], Vec::new()));
    }
    let both = [
        key(&format!("https://{text}"))?,
        key(&format!("http://{text}"))?,
    ];
    // A port that is one scheme's own is left out for that one alone.
    let has_port = both.iter().any(|key| key.authority() != key.host());
    let beginnings = match has_port {
        true => Vec::new(),
        false => both.iter().map(|key| format!("{key}:")).collect(),
    };
    Ok((both.map(|key| key.as_str().to_owned()).to_vec(), beginnings))
}

/// The authorities whose names are most like one.
fn near(wanted: &str, known: Vec<String>) -> Vec<String> {
    let name = |authority: &str| {
        HostKey::parse(authority).map_or_else(|_| authority.to_owned(), |key| key.host().to_owned())
    };
    let wanted = name(wanted);
    let most = wanted.chars().count().div_ceil(3);
    let mut near: Vec<(usize, String)> = known
        .into_iter()
        .filter_map(|authority| {
            let other = name(&authority);
            let is_part =
                other.ends_with(&format!(".{wanted}")) || wanted.ends_with(&format!(".{other}"));
            let apart = match is_part {
                true => 1,
                false => strsim::damerau_levenshtein(&wanted, &other),
            };
            (apart <= most).then_some((apart, authority))
        })
        .collect();
    near.sort_unstable();
    near.into_iter()
        .take(NEAR)
        .map(|(_, authority)| authority)
        .collect()
}

fn ids(hosts: &[KnownHost]) -> Vec<i32> {
    hosts.iter().map(|host| host.id.0).collect()
}

fn span(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(host: &str) -> (Vec<String>, Vec<String>) {
        meant(host).unwrap()
    }

    #[test]
    fn a_url_means_its_host_alone() {
        for text in ["https://Example.org/a?b", "https://example.org:443"] {
            assert_eq!(names(text), (vec!["https://example.org".into()], vec![]));
        }
    }

    #[test]
    fn a_bare_name_means_all_schemes_and_ports() {
        let (exact, open) = names("example.org");
        assert_eq!(exact, ["https://example.org", "http://example.org"]);
        assert_eq!(open, ["https://example.org:", "http://example.org:"]);
        assert_eq!(names("[::1]").1, ["https://[::1]:", "http://[::1]:"]);
    }

    #[test]
    fn a_name_with_a_port_means_both_schemes_of_it() {
        let (exact, open) = names("example.org:80");
        assert_eq!(exact, ["https://example.org:80", "http://example.org"]);
        assert!(open.is_empty());
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", "ftp://example.org", "https://", "a b"] {
            assert!(
                matches!(meant(text), Err(OperateError::NotAHost { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn slips_and_subdomains_are_near_and_strangers_are_not() {
        let known = [
            "https://example.org",
            "http://www.exmaple.org:81",
            "http://elsewhere.net",
        ];
        let known = || known.map(str::to_owned).to_vec();
        assert_eq!(
            near("https://exampel.org", known()),
            ["https://example.org"]
        );
        assert_eq!(
            near("http://exmaple.org", known())[0],
            "http://www.exmaple.org:81"
        );
        assert!(near("http://a.net", known()).is_empty());
    }
}
