//! Sitemaps (sitemaps.org 0.9): read as they come, piece by piece, so that one of 50 MB takes the memory of one piece.
//!
//! A [`Sitemap`] is fed decoded bytes and answers entries. What a file *is* decides its content, not its name or type: `urlset`,
//! `sitemapindex`, or text with a URL a line. Files in the field are sloppy, and the reading is lenient: blanks and marks before the
//! declaration, any encoding, `&` that is not escaped, names of any case and prefix, end tags that are missing, files that break off.
//! What entries lead to, and whether they may, is the crawl's to judge.
//!
//! No entity that a file declares is ever replaced (XML 1.0 §4.4.8 would have it): an entry that needs one is left out, so that neither
//! a file is read nor memory eaten. Feeds (RSS, Atom) are no sitemaps here.

mod entry;
mod lines;
mod text;
mod xml;

#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

use self::{lines::Lines, text::Decoding, xml::Xml};

/// Entries of one sitemap that are read (sitemaps.org: 50,000 URLs).
pub const MOST_URLS: u32 = 50_000;

/// Bytes of one sitemap that are read, decoded (sitemaps.org: 50 MB, 52,428,800 bytes).
pub const MOST_BYTES: u64 = 50 << 20;

/// How deep indexes nest that are followed; redirects count as well. sitemaps.org allows none, and one or two are met.
pub const MOST_NESTED: u16 = 10;

/// How far the beginning of a file is looked for behind blanks, in bytes of text. Above it there is nothing to wait for.
const MOST_BLANK: usize = 64 << 10;

/// Bytes of the head of an answer by which [`guess`] can tell.
pub const HEAD_BYTES: usize = 4_096;

/// How often a URL changes, as its site says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the words of sitemaps.org")]
pub enum ChangeFreq {
    Always,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Never,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A page: `<url>`, or a line of a text sitemap.
    Page,
    /// Another sitemap: `<sitemap>` of an index.
    Sitemap,
    /// The page in another language or form: `<xhtml:link rel="alternate">`.
    Alternate,
    /// A picture on the page: `<image:loc>`. No page.
    Image,
    /// A film on the page, its player or its picture: `<video:…_loc>`. No page.
    Video,
}

/// What a sitemap says of one URL.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// The URL as written, without the blanks around it; at most 8 KiB. Sitemaps write absolute ones.
    pub loc: String,
    /// When the page was changed; none where the date cannot be read.
    pub lastmod: Option<DateTime<Utc>>,
    /// Among the URLs of its site, 0 to 1; none where nothing or nonsense is said (0.5 is meant then).
    pub priority: Option<f32>,
    /// How often it changes.
    pub changefreq: Option<ChangeFreq>,
}

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `<urlset>`
    UrlSet,
    /// `<sitemapindex>`
    Index,
    /// A URL a line.
    Text,
}

/// How the reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// With the file.
    Whole,
    /// The file breaks off: what was read before counts.
    Cut,
    /// At the limit of entries.
    Full,
    /// It is too broken to go on; what was read before counts.
    Broken,
    /// It is none: a page, a feed, something else.
    NoSitemap,
}

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What it is; none where it is no sitemap.
    pub format: Option<Format>,
    /// Entries that name a page or a sitemap.
    pub urls: u32,
    /// Entries without a usable `loc`, and lines that are no URL.
    pub invalid: u32,
    /// How it ended.
    pub end: End,
}

/// Whether to go on feeding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More may come of it.
    More,
    /// It is full, broken or no sitemap.
    Enough,
}

/// A sitemap that is being read.
#[derive(Debug)]
pub struct Sitemap {
    decoding: Decoding,
    /// Text that waits for its sequel.
    text: String,
    reader: Reader,
    most: u32,
}

#[derive(Debug)]
enum Reader {
    /// Nothing but blanks so far.
    Start,
    Xml(Xml),
    Lines(Lines),
    Nothing,
}

impl Format {
    /// The word for it in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::UrlSet => "urlset",
            Format::Index => "index",
            Format::Text => "text",
        }
    }
}

impl Sitemap {
    /// Begins to read. `charset` is the parameter of the answer's media type, `most` the number of URLs that are read.
    pub fn new(charset: Option<&str>, most: u32) -> Sitemap {
        Sitemap {
            decoding: Decoding::new(charset),
            text: String::new(),
            reader: Reader::Start,
            most,
        }
    }

    /// Reads the next piece; what it completes is added to `found`.
    pub fn feed(&mut self, bytes: &[u8], found: &mut Vec<Entry>) -> Progress {
        self.decoding.feed(bytes, &mut self.text);
        self.read(found, false)
    }

    /// Reads what is left, and sums up.
    pub fn finish(mut self, found: &mut Vec<Entry>) -> Summary {
        self.decoding.finish(&mut self.text);
        self.read(found, true);
        match self.reader {
            Reader::Xml(xml) => xml.finish(found, self.most),
            Reader::Lines(lines) => lines.summary(self.most),
            Reader::Start | Reader::Nothing => Summary {
                format: None,
                urls: 0,
                invalid: 0,
                end: End::NoSitemap,
            },
        }
    }

    fn read(&mut self, found: &mut Vec<Entry>, at_end: bool) -> Progress {
        if matches!(self.reader, Reader::Start) {
            let begun = text::without_blanks(&self.text);
            let blanks = self.text.len() - begun.len();
            self.reader = match begun.chars().next() {
                Some('<') => Reader::Xml(Xml::default()),
                Some(_) => Reader::Lines(Lines::default()),
                None if blanks > MOST_BLANK || at_end => Reader::Nothing,
                None => return Progress::More,
            };
            self.text.drain(..blanks);
        }
        match &mut self.reader {
            Reader::Xml(xml) => xml.read(&mut self.text, found, self.most, at_end),
            Reader::Lines(lines) => lines.read(&mut self.text, found, self.most, at_end),
            Reader::Start | Reader::Nothing => Progress::Enough,
        }
    }
}

/// What an answer is, as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// An XML sitemap, whatever it is called.
    Sitemap,
    /// Perhaps a text sitemap; perhaps nothing.
    Unclear,
    /// Other markup: a page, a feed.
    Other,
}

/// Guesses what an answer is that begins thus. [`HEAD_BYTES`] are enough.
pub fn guess(head: &[u8]) -> Guess {
    let mut sitemap = Sitemap::new(None, MOST_URLS);
    // Its entries do not matter here.
    let mut found = Vec::new();
    sitemap.feed(head, &mut found);
    sitemap.decoding.finish(&mut sitemap.text);
    sitemap.read(&mut found, false);
    match sitemap.reader {
        Reader::Xml(xml) if xml.format().is_some() => Guess::Sitemap,
        Reader::Xml(xml) if xml.is_other() => Guess::Other,
        _ => Guess::Unclear,
    }
}
