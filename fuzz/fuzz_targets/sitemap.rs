//! Any bytes as a sitemap, in pieces of any size.
//!
//! The first byte is the size of a piece, the rest the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgcrawl::extract::sitemap::{End, EntryKind, HEAD_BYTES, Progress, Sitemap, guess};

const MOST: u32 = 100;

fuzz_target!(|data: &[u8]| {
    let Some((&size, file)) = data.split_first() else {
        return;
    };
    let mut sitemap = Sitemap::new(None, MOST);
    let mut found = Vec::new();
    for piece in file.chunks(usize::from(size).max(1)) {
        if sitemap.feed(piece, &mut found) == Progress::Enough {
            break;
        }
    }
    let summary = sitemap.finish(&mut found);
    guess(&file[..file.len().min(HEAD_BYTES)]);

    let named = found
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::Page | EntryKind::Sitemap));
    assert_eq!(named.count(), summary.urls as usize);
    assert!(summary.urls <= MOST);
    assert_eq!(summary.format.is_none(), summary.end == End::NoSitemap);
    for entry in &found {
        assert!(!entry.loc.is_empty() && entry.loc.len() <= 8_192);
        assert_eq!(entry.loc.trim(), entry.loc);
        assert!(
            entry
                .priority
                .is_none_or(|priority| (0.0..=1.0).contains(&priority))
        );
    }
});
