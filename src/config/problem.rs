//! Complaints about a configuration: all of them, each with its place and a hint.

use std::fmt;

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the value stands: `pgcrawl.toml:12`, `PGCRAWL_FETCH_PROXY`, `--delay`; `None` for a default.
    pub place: Option<String>,
    /// What is wrong, naming the key.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// All complaints about a configuration; never empty.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// Returns the candidate that a mistyped word most likely means, if one is near.
///
/// Near is an edit distance of at most a third of the word's length: `dealy` is near `delay`, `colour` is near nothing.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance over characters, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_slip_finds_its_word_and_a_stranger_finds_none() {
        let words = ["delay", "per_host", "rate", "concurrency"];
        assert_eq!(nearest("dealy", words), Some("delay"));
        assert_eq!(nearest("per-host", words), Some("per_host"));
        assert_eq!(nearest("concurency", words), Some("concurrency"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
