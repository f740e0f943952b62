//! Text sitemaps: a URL a line.

use super::{
    End, Entry, EntryKind, Format, Progress, Summary,
    entry::{LONGEST, tidy},
};

/// Lines that are no URL before the first that is one: above it, the file is something else.
const MOST_JUNK: u32 = 100;

#[derive(Debug, Default)]
pub(super) struct Lines {
    urls: u32,
    invalid: u32,
    full: bool,
}

impl Lines {
    pub(super) fn read(
        &mut self,
        text: &mut String,
        found: &mut Vec<Entry>,
        most: u32,
        at_end: bool,
    ) -> Progress {
        let whole = match at_end {
            true => text.len(),
            false => text.rfind(['\n', '\r']).map_or(0, |at| at + 1),
        };
        for line in text[..whole].split(['\n', '\r']) {
            let line = tidy(line);
            if line.is_empty() {
                continue;
            }
            if self.urls >= most {
                self.full = true;
                return Progress::Enough;
            }
            if !is_url(line) {
                self.invalid += 1;
                if self.is_junk() {
                    return Progress::Enough;
                }
                continue;
            }
            self.urls += 1;
            found.push(Entry::bare(EntryKind::Page, line.to_owned()));
        }
        text.drain(..whole);
        if text.len() > LONGEST {
            // No URL is as long: what follows up to the end of the line is read as one that is none.
            text.clear();
            text.push('#');
            self.invalid += 1;
        }
        match self.is_junk() {
            true => Progress::Enough,
            false => Progress::More,
        }
    }

    fn is_junk(&self) -> bool {
        self.urls == 0 && self.invalid > MOST_JUNK
    }

    pub(super) fn summary(&self, most: u32) -> Summary {
        Summary {
            format: (self.urls > 0).then_some(Format::Text),
            urls: self.urls.min(most),
            invalid: self.invalid,
            end: match (self.urls, self.full) {
                (0, _) => End::NoSitemap,
                (_, true) => End::Full,
                (_, false) => End::Whole,
            },
        }
    }
}

fn is_url(line: &str) -> bool {
    let starts = |scheme: &str| {
        line.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    line.len() <= LONGEST
        && !line.contains(char::is_whitespace)
        && (starts("http://") || starts("https://"))
}
