//! What a page says about its use, as the JSON of `pages.signals`.

use serde_json::{Map, Value};

use super::text::clean;
use crate::extract::{Extraction, Link};

/// Longest text that is kept of one signal, in characters.
const LONGEST: usize = 1_000;

/// The signals of a page as a JSON object, without those that it does not give; none where it gives none.
///
/// `robots_usage` is what robots.txt says of the use of its content.
pub fn signals_json(found: &Extraction, robots_usage: Option<&str>) -> Option<String> {
    let mut object = Map::new();
    let signals = &found.signals;
    for (name, said) in [
        ("noindex", signals.noindex),
        ("noarchive", signals.noarchive),
        ("nofollow", found.nofollow),
        ("noai", signals.noai),
        ("noimageai", signals.noimageai),
    ] {
        if said {
            object.insert(name.to_owned(), Value::Bool(true));
        }
    }
    for (name, said) in [
        ("content_usage", signals.content_usage.as_deref()),
        ("robots_content_usage", robots_usage),
        ("tdm_reservation", signals.tdm_reservation.as_deref()),
        ("tdm_policy", signals.tdm_policy.as_deref()),
    ] {
        if let Some(text) = said {
            object.insert(name.to_owned(), clean(text, LONGEST).into());
        }
    }
    let count = |is: fn(&Link) -> bool| found.links.iter().filter(|link| is(link)).count();
    let withheld = match found.nofollow {
        true => found.links.len(),
        false => count(|link| link.rel.nofollow),
    };
    for (name, links) in [
        ("withheld", withheld),
        ("ugc", count(|link| link.rel.ugc)),
        ("sponsored", count(|link| link.rel.sponsored)),
    ] {
        if links > 0 {
            object.insert(name.to_owned(), links.into());
        }
    }
    (!object.is_empty()).then(|| Value::Object(object).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::PageUrl;
    use crate::extract::{LinkKind, Rel, Signals};

    fn link(path: &str, rel: Rel) -> Link {
        Link {
            url: PageUrl::parse(&format!("http://h.test{path}")).unwrap(),
            rel,
            kind: LinkKind::Anchor,
            rel_text: None,
            anchor: None,
        }
    }

    #[test]
    fn only_what_is_said_is_there() {
        let mut found = Extraction::default();
        assert_eq!(signals_json(&found, None), None);
        let nofollow = Rel {
            nofollow: true,
            ugc: true,
            ..Rel::default()
        };
        found.links = vec![link("/a", nofollow), link("/b", Rel::default())];
        found.signals = Signals {
            noai: true,
            content_usage: Some("train-ai\0=n".to_owned()),
            ..Signals::default()
        };
        let json: Value =
            serde_json::from_str(&signals_json(&found, Some("x=y")).unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({ "noai": true, "content_usage": "train-ai=n", "robots_content_usage": "x=y", "withheld": 1, "ugc": 1 })
        );
        found.nofollow = true;
        let json: Value = serde_json::from_str(&signals_json(&found, None).unwrap()).unwrap();
        assert_eq!(
            (&json["withheld"], &json["nofollow"]),
            (&2.into(), &true.into())
        );
    }
}
