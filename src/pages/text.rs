//! Text at the edge of the database: nothing that comes from the web may break a row.

use http::HeaderMap;

use crate::exchange;

/// Headers whose values are nobody's business but the two ends'.
const PRIVATE: [&str; 3] = ["set-cookie", "set-cookie2", "cookie"];

/// Text that Postgres takes: without NUL (which no `text` holds), and no longer than `longest` characters.
pub fn clean(text: &str, longest: usize) -> String {
    text.chars().filter(|&c| c != '\0').take(longest).collect()
}

/// Response headers as a JSON object: names in lower case, each with its value, or with an array of values in order.
///
/// Cookies are left out. Values are UTF-8 where they are, else read as ISO-8859-1; NUL is dropped, which `jsonb` refuses.
pub fn headers_json(headers: &HeaderMap) -> String {
    let mut object = serde_json::Map::with_capacity(headers.keys_len());
    for name in headers.keys() {
        if PRIVATE.contains(&name.as_str()) {
            continue;
        }
        let mut values: Vec<serde_json::Value> = headers
            .get_all(name)
            .iter()
            .map(|value| serde_json::Value::String(clean(&exchange::text(value), 8_000)))
            .collect();
        let value = if values.len() == 1 {
            values.remove(0)
        } else {
            serde_json::Value::Array(values)
        };
        object.insert(name.as_str().to_owned(), value);
    }
    serde_json::Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::HeaderName};

    use super::*;

    #[test]
    fn nul_is_dropped_and_length_counts_characters() {
        assert_eq!(clean("a\0b", 10), "ab");
        assert_eq!(clean("äöü", 2), "äö");
    }

    #[test]
    fn headers_keep_their_order_and_lose_their_cookies() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("Vary", "a"),
            ("Vary", "b"),
            ("Set-Cookie", "secret=1"),
            ("X-Odd", "J\u{e4}nner"),
        ] {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        headers.append("x-latin", HeaderValue::from_bytes(b"J\xE4nner").unwrap());
        let json: serde_json::Value = serde_json::from_str(&headers_json(&headers)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"vary": ["a", "b"], "x-odd": "Jänner", "x-latin": "Jänner"})
        );
    }
}
