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
    for batch in SeedReader::new(vec![Source::File(file.path().to_owned())]) {
        let batch = batch?;
        seeds.extend(batch.seeds.iter().map(|seed| seed.as_str().to_owned()));
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
    let sizes: Vec<usize> = SeedReader::new(sources)
        .map(|batch| batch.unwrap().seeds.len())
        .collect();
    assert_eq!(sizes, [1_000, 1_000, 201]);
}

#[test]
fn a_wrong_file_does_not_flood_the_screen() {
    let mut text = "mailto:me@example.org\n".repeat(5_000);
    text.push_str("https://example.org/\n");
    let file = file(text.as_bytes());
    let batches: Vec<Batch> = SeedReader::new(vec![Source::File(file.path().into())])
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
    let mut stream = stream(vec![
        Source::File(good.path().into()),
        Source::File(empty.path().into()),
    ]);
    let mut results = Vec::new();
    while let Some(batch) = stream.recv().await {
        results.push(batch.map(|batch| batch.seeds.len()));
    }
    assert!(
        matches!(results.as_slice(), [Ok(1), Err(SeedError::Empty(_))]),
        "{results:?}"
    );
}
