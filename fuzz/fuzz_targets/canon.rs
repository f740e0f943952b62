//! Any bytes as a URL, a reference to another, rules of the key, and a line of a block list.
//!
//! The first byte chooses the lists, the first line after it is a rule of ignored parameters, the second a URL, the third a reference, the rest a
//! line of a list.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgcrawl::canon::{
    BASE, Canon, CanonOptions, HostKey, HrefCache, IgnoreParams, Listed, PageUrl,
};
use pgcrawl::scope::block::{self, Blocks};

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    let mut parts = text.splitn(4, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let (rule, typed, href, line) = (next(), next(), next(), next());
    let listed = |bit: u8| match choice & bit {
        0 => Listed::Off,
        _ => Listed::V1,
    };
    let ignore: Option<IgnoreParams> = rule.parse().ok();
    if let Some(rule) = &ignore {
        assert_eq!(
            rule.to_string().parse().as_ref(),
            Ok(rule),
            "a rule reads back"
        );
    }
    let canon = Canon::new(CanonOptions {
        session_ids: listed(1),
        tracking: listed(2),
        ignore: ignore.into_iter().collect(),
    });
    let Ok(url) = PageUrl::seed(typed) else {
        return;
    };
    judge(&url, &canon);
    let joined = url.join(href).ok();
    if let Some(joined) = &joined {
        judge(joined, &canon);
    }
    let mut cache = HrefCache::new(8);
    for _ in 0..2 {
        assert_eq!(
            cache.resolve(url.as_url(), href),
            joined,
            "the cache says what the parser says"
        );
    }
    if let Ok(Some(entry)) = block::entry(line) {
        assert_eq!(
            block::entry(&entry),
            Ok(Some(entry.clone())),
            "an entry is its own form"
        );
        let mut blocks = Blocks::default();
        blocks.insert(&entry);
        for url in joined.iter().chain([&url]) {
            let covering = blocks.covering(url);
            assert!(
                covering
                    .is_none_or(|found| found == entry && block::candidates(url).contains(&found))
            );
        }
        blocks.remove(&entry);
        assert!(blocks.is_empty() && blocks.covering(&url).is_none());
    }
});

fn judge(url: &PageUrl, canon: &Canon) {
    assert!(url.as_str().is_ascii());
    let again = PageUrl::parse(url.as_str()).expect("what is fetched is a URL");
    assert_eq!(again.as_str(), url.as_str());
    assert_eq!(
        HostKey::parse(url.host().as_str()).ok().as_ref(),
        Some(url.host())
    );
    for canon in [&BASE, canon] {
        let key = url.canonical(canon);
        let page = PageUrl::parse(&key).expect("a key is a URL");
        assert_eq!(page.canonical(canon), key, "a key is its own key");
        assert_eq!(page.digest(canon), url.digest(canon));
        assert_eq!(again.digest(canon), url.digest(canon));
        assert_eq!(page.host(), url.host());
    }
}
