//! A row of `pages`, from an exchange or from the lack of one.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING,
};
use sha2::{Digest as _, Sha256};

use super::text::{clean, headers_json};
use crate::{
    clock::Boottime,
    exchange::{Exchange, Truncated},
    extract::{CharsetFrom, Extraction},
};

/// Longest text that a column of a page takes, in characters: URLs and header values beyond it are cut.
const LONGEST: usize = 4_000;

/// Header fields that tell how the stored body was read.
const OF_THE_REPRESENTATION: [HeaderName; 5] = [
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
];

/// One visit's row. Column names are those of the table; what they mean stands there (`\d+ pages`).
#[derive(Clone, Debug)]
#[allow(
    missing_docs,
    reason = "the columns are documented once, in migrations/0002_pages.sql and 0009_revisits.sql"
)]
pub struct PageRow {
    /// 304: the row of the last visit stays but for what this one says, see [`PageRow::unmodified`].
    pub http_status: Option<u16>,
    pub http_version: Option<&'static str>,
    pub hops: u8,
    /// From the request to the last byte; column `fetch_ms`.
    pub fetch: Option<Duration>,
    /// When the fetch ended; becomes `fetched_at` by the database's clock.
    pub ended: Boottime,
    pub wire_bytes: u64,
    pub body_bytes: u64,
    pub links: u32,
    pub truncated: Option<&'static str>,
    pub error: Option<String>,
    pub error_detail: Option<String>,
    pub final_url: Option<String>,
    pub redirect_to: Option<String>,
    pub content_type: Option<String>,
    pub charset: Option<&'static str>,
    pub charset_from: Option<&'static str>,
    pub lang: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub h1: Option<String>,
    pub canonical_url: Option<String>,
    pub robots: Option<String>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub ip: Option<IpAddr>,
    pub proxy: Option<Arc<str>>,
    /// SHA-256 of the payload after content coding, before charset decoding.
    pub digest: Option<[u8; 32]>,
    /// A JSON object of all response headers but cookies.
    pub headers: Option<String>,
    /// Fingerprint of what the reading of the page depended on; `None` where nothing was read.
    pub reading: Option<i32>,
    /// Decoded UTF-8 text, where it is kept; goes to table `bodies`.
    pub body: Option<Vec<u8>>,
    /// Fingerprint of its visible text, [`crate::extract::simhash`].
    pub simhash: Option<i64>,
    /// Whether not all of its links were followed that belong to the crawl, so that a copy of it is followed all the same.
    pub links_withheld: bool,
    /// What it says about its use, a JSON object of [`signals_json`](super::signals_json).
    pub signals: Option<String>,
}

impl PageRow {
    /// The row of an answer. The extraction is taken apart: its text becomes the body, if it is kept.
    pub fn answered(
        exchange: &Exchange,
        extraction: Option<Extraction>,
        keep_body: bool,
    ) -> PageRow {
        let header = |name: &str| exchange.header(name).map(|value| clean(&value, LONGEST));
        let mut row = PageRow {
            http_status: Some(exchange.status),
            http_version: Some(exchange.http_version()),
            hops: exchange.hops,
            fetch: Some(exchange.elapsed),
            ended: exchange.ended,
            wire_bytes: exchange.wire_bytes,
            body_bytes: exchange.body.len() as u64,
            truncated: exchange.truncated.map(Truncated::as_str),
            final_url: (exchange.final_url != exchange.url)
                .then(|| clean(exchange.final_url.as_str(), LONGEST)),
            redirect_to: exchange
                .redirect_target()
                .map(|target| clean(&target, LONGEST)),
            content_type: exchange.content_type().map(|value| clean(&value, LONGEST)),
            etag: header("etag"),
            last_modified: header("last-modified"),
            ip: exchange.ip,
            proxy: exchange.proxy.clone(),
            digest: (!exchange.body.is_empty()).then(|| Sha256::digest(&exchange.body).into()),
            headers: Some(headers_json(&exchange.headers)),
            ..PageRow::empty(exchange.ended)
        };
        if let Some(found) = extraction {
            row.links = u32::try_from(found.links.len())
                .unwrap_or(u32::MAX)
                .saturating_add(found.links_excess);
            row.charset = found.charset;
            row.charset_from = found.charset_from.map(CharsetFrom::as_str);
            row.lang = found.lang.map(|text| clean(&text, 100));
            row.title = found.title.map(|text| clean(&text, LONGEST));
            row.description = found.description.map(|text| clean(&text, LONGEST));
            row.h1 = found.h1.map(|text| clean(&text, LONGEST));
            row.canonical_url = found.canonical_url.map(|text| clean(&text, LONGEST));
            row.robots = found.robots.map(|text| clean(&text, LONGEST));
            row.body = found.text.filter(|_| keep_body).map(String::into_bytes);
        }
        row
    }

    /// What a 304 says: that the page is as it was, and what of its row is new (RFC 9111 §3.2).
    ///
    /// The finish leaves the page's text, digest, size and status, and takes times, the version of HTTP, the date and headers from here;
    /// address and proxy stay those of the stored answer. What the headers
    /// say of the representation stays with what was read of it.
    pub fn unmodified(exchange: &Exchange) -> PageRow {
        let mut headers = exchange.headers.clone();
        for name in OF_THE_REPRESENTATION {
            headers.remove(name);
        }
        PageRow {
            headers: Some(headers_json(&headers)),
            ..PageRow::answered(exchange, None, false)
        }
    }

    /// The row of a visit that had no usable answer.
    pub fn without_answer(
        class: &str,
        detail: &str,
        took: Duration,
        proxy: Option<Arc<str>>,
    ) -> PageRow {
        PageRow {
            fetch: Some(took),
            error: Some(clean(class, 100)),
            error_detail: Some(clean(detail, 1_000)),
            proxy,
            ..PageRow::empty(Boottime::now())
        }
    }

    /// A row that says nothing but when the fetch ended.
    pub fn empty(ended: Boottime) -> PageRow {
        PageRow {
            http_status: None,
            http_version: None,
            hops: 0,
            fetch: None,
            ended,
            wire_bytes: 0,
            body_bytes: 0,
            links: 0,
            truncated: None,
            error: None,
            error_detail: None,
            final_url: None,
            redirect_to: None,
            content_type: None,
            charset: None,
            charset_from: None,
            lang: None,
            title: None,
            description: None,
            h1: None,
            canonical_url: None,
            robots: None,
            etag: None,
            last_modified: None,
            ip: None,
            proxy: None,
            digest: None,
            headers: None,
            reading: None,
            body: None,
            simhash: None,
            links_withheld: false,
            signals: None,
        }
    }
}
