use std::io::Write;

use tempfile::NamedTempFile;

use super::*;

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// The seeds as texts, and the bad lines with their numbers.
type Read = (Vec<String>, Vec<(u64, String)>);

fn read(bytes: &[u8]) -> Result<Read, SeedError> {
    let file = file(bytes);
    let (mut seeds, mut bad) = (Vec::new(), Vec::new());
    for batch in SeedReader::new(vec![Source::File(file.path().to_owned())], None) {
        let batch = batch?;
        seeds.extend(batch.seeds.iter().map(|seed| seed.url.as_str().to_owned()));
        bad.extend(
            batch
                .bad
                .into_iter()
                .map(|line| (line.number, line.message)),
        );
    }
    Ok((seeds, bad))
}

fn source(text: &str) -> Result<Source, SeedError> {
    Source::of(&OsString::from(text))
}

#[test]
fn comments_blank_lines_crlf_and_a_byte_order_mark_do_no_harm() {
    let text = "\u{feff}https://example.org/\r\n\r\n# a comment\n  example.com/a#part  # why\n\thttp://example.net \n";
    let (seeds, bad) = read(text.as_bytes()).unwrap();
    assert_eq!(
        seeds,
        [
            "https://example.org/",
            "https://example.com/a",
            "http://example.net/"
        ]
    );
    assert_eq!(bad, []);
}

#[test]
fn a_bad_line_is_told_with_its_number_and_the_rest_goes_on() {
    let (seeds, bad) = read(
        b"https://example.org/\n\nhttp://\nftp://example.org/\n\xff\xfe\nhttps://example.com/\n",
    )
    .unwrap();
    assert_eq!(seeds, ["https://example.org/", "https://example.com/"]);
    assert_eq!(
        bad.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        [3, 4, 5]
    );
}

#[test]
fn a_line_without_an_end_is_skipped_in_bounded_memory() {
    let mut bytes = b"https://example.org/".to_vec();
    bytes.extend(vec![b'a'; 3 * LINE_BYTES as usize]);
    bytes.extend(b"\nhttps://example.com/\n");
    let (seeds, bad) = read(&bytes).unwrap();
    assert_eq!(seeds, ["https://example.com/"]);
    assert_eq!(bad.len(), 1);
}

#[test]
fn a_file_without_a_seed_is_an_error() {
    assert!(matches!(read(b""), Err(SeedError::Empty(_))));
    assert!(matches!(
        read(b"# nothing yet\n\n"),
        Err(SeedError::Empty(_))
    ));
    assert!(matches!(
        read(b"ftp://example.org\n"),
        Err(SeedError::AllBad { lines: 1, .. })
    ));
}

#[test]
fn batches_are_of_a_thousand_and_go_over_the_ends_of_files() {
    let lines = |host: &str, count: usize| -> Vec<u8> {
        (0..count)
            .flat_map(|n| format!("https://{host}/{n}\n").into_bytes())
            .collect()
    };
    let (one, other) = (
        file(&lines("example.org", 1_500)),
        file(&lines("example.com", 700)),
    );
    let last = source("example.net").unwrap();
    let sources = vec![
        Source::File(one.path().into()),
        Source::File(other.path().into()),
        last,
    ];
    let sizes: Vec<usize> = SeedReader::new(sources, None)
        .map(|batch| batch.unwrap().seeds.len())
        .collect();
    assert_eq!(sizes, [1_000, 1_000, 201]);
}

#[test]
fn a_wrong_file_does_not_flood_the_screen() {
    let mut text = "mailto:me@example.org\n".repeat(5_000);
    text.push_str("https://example.org/\n");
    let file = file(text.as_bytes());
    let batches: Vec<Batch> = SeedReader::new(vec![Source::File(file.path().into())], None)
        .map(|batch| batch.unwrap())
        .collect();
    assert_eq!(
        batches.iter().map(|batch| batch.bad.len()).sum::<usize>(),
        20
    );
    assert_eq!(batches.last().unwrap().bad_lines, 5_000);
}

#[test]
fn a_login_in_a_seed_is_refused_with_the_place_where_it_belongs_and_never_repeated() {
    let error = source("https://me:hunter2@example.org/").unwrap_err();
    assert!(error.to_string().contains("[[hosts]]"), "{error}");
    assert!(error.hint().unwrap().contains("password"));
    let found =
        read(b"https://me:hunter2@example.org/\nhttps://me@example.org/\nexample.org\n").unwrap();
    assert_eq!(found.1.len(), 2);
    let odd = source("https://me:hunter2@exa mple/").unwrap_err();
    for told in [
        format!("{error:?} {error}"),
        format!("{:?}", found.1),
        format!("{odd:?} {odd}"),
    ] {
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn an_argument_is_a_file_a_url_or_a_mistake_that_is_named() {
    let existing = file(b"https://example.org/\n");
    assert!(matches!(
        source(existing.path().to_str().unwrap()),
        Ok(Source::File(_))
    ));
    assert_eq!(source("-").unwrap(), Source::Stdin);
    for url in [
        "example.org",
        "example.org/docs",
        "localhost:8080",
        "127.0.0.1:8000/a",
        "http://wiki/",
    ] {
        assert!(matches!(source(url), Ok(Source::Url(_))), "{url}");
    }
    for path in [
        "seeds/exmaple.txt",
        "./nosuch",
        "../x",
        "/nowhere/seeds",
        "list",
        "seeds.txt",
    ] {
        assert!(matches!(source(path), Err(SeedError::NoFile(_))), "{path}");
    }
    assert!(matches!(source("/"), Err(SeedError::Folder(_))));
    assert!(matches!(
        source("ftp://example.org"),
        Err(SeedError::NoUrl { .. })
    ));
}

#[tokio::test]
async fn a_stream_hands_out_what_it_has_before_its_first_error_and_ends() {
    let (good, empty) = (file(b"example.org\n"), file(b"\n"));
    let mut stream = stream(
        vec![
            Source::File(good.path().into()),
            Source::File(empty.path().into()),
        ],
        None,
    );
    let mut results = Vec::new();
    while let Some(batch) = stream.recv().await {
        results.push(batch.map(|batch| batch.seeds.len()));
    }
    assert!(
        matches!(results.as_slice(), [Ok(1), Err(SeedError::Empty(_))]),
        "{results:?}"
    );
}

/// What a file of this format says: URL, priority, depth, label, scope of each seed, and the bad lines.
fn records(format: Format, text: &str) -> Result<Read, SeedError> {
    let file = file(text.as_bytes());
    let source = Source::File(file.path().to_owned());
    let (mut seeds, mut bad) = (Vec::new(), Vec::new());
    for batch in SeedReader::new(vec![source], Some(format)) {
        let batch = batch?;
        seeds.extend(batch.seeds.iter().map(|seed| {
            let label = seed.label.as_deref().unwrap_or("-");
            let scope = seed.scope.map_or("-", crate::scope::ScopeKind::as_str);
            format!(
                "{} {} {} {label} {scope}",
                seed.url, seed.priority, seed.depth
            )
        }));
        bad.extend(
            batch
                .bad
                .into_iter()
                .map(|line| (line.number, line.message)),
        );
    }
    Ok((seeds, bad))
}

const MEANT: [&str; 4] = [
    "https://example.org/ -5 2 the news site",
    "https://example.org/b 0 0 - -",
    "https://example.org/c,d 32767 0 a \"b\" -",
    "http://example.org/e 0 0 - prefix",
];

#[test]
fn a_line_of_json_has_columns_in_any_order_and_only_the_url_is_a_must() {
    let text = r#"{"label": " the news ", "url": "example.org", "scope": "site", "depth": 2, "priority": -5}

{"url": "https://example.org/b", "label": null, "scope": ""}
{"url": "https://example.org/c,d", "priority": 32767, "label": "a \"b\""}
 {"url":"http://example.org/e#f","scope":"prefix"} "#;
    let (seeds, bad) = records(Format::Jsonl, text).unwrap();
    assert_eq!(seeds, MEANT);
    assert_eq!(bad, []);
}

#[test]
fn csv_names_its_columns_first_and_quotes_what_has_commas() {
    let text = "\u{feff}\n Label,URL,Scope,depth,priority\r\n the news ,example.org,site,2,-5\r\n\r\n,https://example.org/b,,,\n\"a \"\"b\"\"\",\"https://example.org/c,d\",,,32767\n,http://example.org/e#f,prefix,0,0";
    let (seeds, bad) = records(Format::Csv, text).unwrap();
    assert_eq!(seeds, MEANT);
    assert_eq!(bad, []);
    let (seeds, _) = records(Format::Csv, "url\nexample.org\n").unwrap();
    assert_eq!(seeds, ["https://example.org/ 0 0 - -"]);
}

#[test]
fn what_is_wrong_with_a_record_is_told_with_its_line_and_costs_only_that() {
    let long = "x".repeat(201);
    let lines = [
        r#"{"url": "example.org", "prio": 1}"#,
        r#"{"url": "example.org", "priority": 32768}"#,
        r#"{"url": "example.org", "depth": -1}"#,
        r#"{"url": "example.org", "depth": "2"}"#,
        r#"{"url": "example.org", "scope": "planet"}"#,
        &format!(r#"{{"url": "example.org", "label": "{long}"}}"#),
        r#"{"url": "example.org", "label": "a\u0000"}"#,
        r#"{"url": "example.org", "url": "example.com"}"#,
        r#"{"url": "mailto:a@example.org"}"#,
        r#"{"label": "a"}"#,
        r#"["example.org"]"#,
        "example.org",
        r#"{"url": "example.net"}"#,
    ];
    let (seeds, bad) = records(Format::Jsonl, &lines.join("\n")).unwrap();
    assert_eq!(seeds, ["https://example.net/ 0 0 - -"]);
    assert_eq!(
        bad.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
        (1..=12).collect::<Vec<_>>()
    );
    for (said, part) in bad.iter().zip([
        "unknown field `prio`, expected one of `url`, `priority`, `depth`, `label`, `scope`",
        "priority is a whole number from -32768 to 32767, not 32768",
        "depth is a whole number from 0 to 32767, not -1",
        "invalid type: string \"2\"",
        "scope \"planet\" is none of host, site, prefix, any",
        "a label has 200 characters at most",
        "no control characters",
        "duplicate field `url`",
        "scheme \"mailto\"",
        "missing field `url`",
        "",
        "",
    ]) {
        assert!(said.1.contains(part), "{said:?}: {part}");
    }

    let text = "url,depth,label\nexample.org,2,a\nexample.org,2\nexample.org,two,a\nexample.org,2,\"a\nb\"\nexample.com,,\n";
    let (seeds, bad) = records(Format::Csv, text).unwrap();
    assert_eq!(
        seeds,
        [
            "https://example.org/ 0 2 a -",
            "https://example.com/ 0 0 - -"
        ]
    );
    assert_eq!(
        bad,
        [
            (3, "2 values for 3 columns".to_owned()),
            (4, "depth is a whole number, not \"two\"".to_owned()),
            (5, "a quote is not closed on its line".to_owned()),
            (6, "a quote is not closed on its line".to_owned()),
        ]
    );
}

#[test]
fn a_wrong_line_of_names_ends_the_file_before_a_seed_is_misread() {
    for (header, said) in [
        ("url,prio,Tag", "unknown columns: prio, Tag"),
        ("url;label", "unknown columns: url;label"),
        (
            "https://example.org/",
            "unknown columns: https://example.org/",
        ),
        ("label,depth", "no column is called url"),
        ("url,label,URL", "columns that are there twice: URL"),
    ] {
        let error = records(Format::Csv, &format!("\n{header}\nexample.org,1\n")).unwrap_err();
        assert!(
            matches!(error, SeedError::Columns { line: 2, .. }),
            "{error:?}"
        );
        assert!(
            error.to_string().ends_with(&format!(":2: {said}")),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("url"));
    }
    assert!(matches!(
        records(Format::Csv, "url\n\n"),
        Err(SeedError::Empty(_))
    ));
}

#[test]
fn a_files_name_tells_its_format_and_the_flag_counts_more() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str, format| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut batches = SeedReader::new(vec![Source::File(path)], format);
        let seeds = batches.next().unwrap().unwrap().seeds;
        seeds[0].label.as_deref().map(str::to_owned)
    };
    let (json, csv) = (
        r#"{"url": "example.org", "label": "x"}"#,
        "url,label\nexample.org,x",
    );
    let x = Some("x".to_owned());
    assert_eq!(read("a.jsonl", json, None), x);
    assert_eq!(read("a.NDJSON", json, None), x);
    assert_eq!(read("a.csv", csv, None), x);
    assert_eq!(read("a.txt", csv, Some(Format::Csv)), x);
    assert_eq!(read("a.csv", "example.org", Some(Format::Text)), None);
}
