//! `pgcrawl fetch` as typed.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::*;

const PAGE: &str = "<html lang=en><title>A page</title><h1 class=top>One  <b>two</b></h1>\
    <p>first</p><p>second</p><a href=/next>on</a></html>";

async fn run(arguments: &[&str]) -> Output {
    tokio::process::Command::new(env!("CARGO_BIN_EXE_pgcrawl"))
        .arg("fetch")
        .args(arguments)
        // Neither a pgcrawl.toml nor the environment of whoever runs the tests.
        .current_dir(std::env::temp_dir())
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[tokio::test]
async fn the_text_of_a_page_goes_to_standard_output_and_no_more() {
    let site = Site::builder().page("/", PAGE).start().await;
    let output = run(&[&site.url("/")]).await;
    assert_eq!(
        (stdout(&output), output.status.code()),
        (&*format!("{PAGE}\n"), Some(0))
    );
    assert_eq!(site.targets(), ["/robots.txt", "/"]);
}

#[tokio::test]
async fn a_selector_gives_a_line_for_each_element() {
    let site = Site::builder().page("/", PAGE).start().await;
    let output = run(&[&site.url("/"), "--select", "p, h1"]).await;
    assert_eq!(stdout(&output), "One two\nfirst\nsecond\n");
    let output = run(&[&site.url("/"), "--select", "p:nth("]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("CSS selector"),
        "{}",
        stderr(&output)
    );
}

#[tokio::test]
async fn headers_come_before_the_body() {
    let site = Site::builder().status("/gone", 410).start().await;
    let output = run(&[&site.url("/gone"), "--headers"]).await;
    let text = stdout(&output);
    assert!(text.starts_with("HTTP 410\n"), "{text}");
    assert!(text.contains("\ncontent-type: text/html\n"), "{text}");
    assert!(text.ends_with("\n\n<title>410 Gone</title>\n"), "{text}");
    assert!(
        stderr(&output).contains("status 410"),
        "{}",
        stderr(&output)
    );
}

#[tokio::test]
async fn json_holds_what_a_crawl_would_learn() {
    let site = Site::builder().page("/", PAGE).start().await;
    let output = run(&[&site.url("/"), "--json", "--select", "h1"]).await;
    let found: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(found["http_status"], 200);
    assert_eq!(found["http_version"], "1.1");
    assert_eq!(found["url"], site.url("/"));
    assert_eq!(
        (&found["title"], &found["lang"]),
        (&json!("A page"), &json!("en"))
    );
    assert_eq!(
        found["headers"]["content-type"],
        json!(["text/html; charset=utf-8"])
    );
    assert_eq!(found["links"][0]["url"], site.url("/next"));
    assert_eq!(found["body_bytes"], PAGE.len());
    assert_eq!(
        found["selected"],
        json!([{ "element": "h1", "attributes": { "class": "top" }, "text": "One two",
                 "html": "<h1 class=\"top\">One  <b>two</b></h1>" }])
    );
}

#[tokio::test]
async fn robots_txt_is_obeyed_unless_it_is_ignored() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /no")
        .page("/no", "page")
        .start()
        .await;
    let output = run(&[&site.url("/no")]).await;
    assert_eq!((stdout(&output), output.status.code()), ("", Some(7)));
    assert!(
        stderr(&output).contains("disallow: /no"),
        "{}",
        stderr(&output)
    );
    assert_eq!(site.count("/no"), 0);
    let output = run(&[&site.url("/no"), "--ignore-robots"]).await;
    assert_eq!((stdout(&output), output.status.code()), ("page\n", Some(0)));
    assert_eq!(site.targets(), ["/robots.txt", "/no"]);
}

#[tokio::test]
async fn no_page_is_fetched_while_robots_txt_cannot_be_had() {
    let site = Site::builder()
        .status("/robots.txt", 503)
        .page("/", "page")
        .start()
        .await;
    let output = run(&[&site.url("/")]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("robots.txt"),
        "{}",
        stderr(&output)
    );
    assert_eq!(site.targets(), ["/robots.txt"]);
}

#[tokio::test]
async fn a_host_that_is_named_may_be_private_and_one_that_it_leads_to_may_not() {
    let inner = Site::builder().robots("").start().await;
    let site = Site::builder()
        .redirect("/robots.txt", 302, inner.url_at("127.0.0.2", "/robots.txt"))
        .start()
        .await;
    let output = run(&[&site.url("/")]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("private address 127.0.0.2"),
        "{}",
        stderr(&output)
    );
    assert!(inner.requests().is_empty());
}

#[tokio::test]
async fn an_error_says_what_and_what_to_do() {
    let server =
        crate::support::authority::Server::plain(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let output = run(&[&server.url(), "--ignore-robots"]).await;
    assert_eq!((stdout(&output), output.status.code()), ("", Some(1)));
    let said = stderr(&output);
    assert!(said.contains("error: tls: "), "{said}");
    assert!(said.contains("hint: try it with http://"), "{said}");
}

#[tokio::test]
async fn headers_and_cookies_are_brought_along_as_typed_and_secrets_are_not_told() {
    let site = Site::builder().page("/", PAGE).start().await;
    let folder = tempfile::tempdir().unwrap();
    let (token, cookies) = (folder.path().join("token"), folder.path().join("cookies"));
    std::fs::write(&token, "hunter2\n").unwrap();
    std::fs::write(&cookies, "127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t1\n").unwrap();
    let secret = format!("X-Token: file:{}", token.display());
    let jar = cookies.display().to_string();
    let flags = [
        "--header",
        "Accept-Language: de",
        "--header",
        &secret,
        "--cookies",
        &jar,
        "-v",
    ];
    let output = run(&[&[&*site.url("/")], &flags[..]].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for request in site.requests() {
        assert_eq!(request.header("accept-language"), "de");
        assert_eq!(request.header("x-token"), "hunter2");
        assert_eq!(request.header("cookie"), "id=1");
    }
    assert!(!stderr(&output).contains("hunter2"));

    let flags = [
        "--header",
        "Host: hunter2",
        "--header",
        "nonsense hunter2",
        "--header",
        "A: 1",
        "--header",
        "a: 2",
    ];
    let output = run(&[&[&*site.url("/")], &flags[..]].concat()).await;
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for part in [
        "--header: Host cannot be set",
        "no. 2 is no header",
        "a is there twice",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let output = run(&["http://me:hunter2@127.0.0.1:9/"]).await;
    assert!(stderr(&output).contains("[[hosts]]"), "{}", stderr(&output));
    assert!(!said.contains("hunter2") && !stderr(&output).contains("hunter2"));
    assert_eq!(site.requests().len(), 2);
}

#[tokio::test]
async fn names_are_looked_up_where_the_flags_say() {
    let site = Site::builder().page("/", "page").start().await;
    let names = crate::support::names::Nameserver::start(&[("here.test", "127.0.0.1")]).await;
    let url = site.url_at("here.test", "/");
    let dns = names.address().to_string();
    let port = site.address().port();
    for flags in [
        ["--dns", &dns],
        ["--resolve", "here.test:127.0.0.1"],
        ["--resolve", &format!("here.test:{port}:127.0.0.1")],
    ] {
        let output = run(&[&url, flags[0], flags[1]]).await;
        assert_eq!(stdout(&output), "page\n", "{}", stderr(&output));
    }
    for (flag, value) in [
        ("--dns", "nowhere"),
        ("--resolve", "here.test"),
        ("--allow-host", "a b"),
    ] {
        let output = run(&[&url, flag, value]).await;
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(flag), "{}", stderr(&output));
    }
    let output = run(&[&url, "--dns", &dns, "--resolver", "system"]).await;
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[tokio::test]
async fn the_proxies_of_the_flags_are_tried_one_after_the_other_and_no_password_is_said() {
    let proxy = crate::support::site::RawListener::always(
        &b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage"[..],
    )
    .await;
    let gone = "gone=http://me:hunter2@127.0.0.1:9";
    let good = format!("good=http://me:hunter2@{}", proxy.address());
    let url = "http://site.test/";
    let output = run(&[
        url,
        "--ignore-robots",
        "--json",
        "--proxy",
        gone,
        "--proxy",
        &good,
    ])
    .await;
    let said = stderr(&output);
    assert!(stdout(&output).contains("\"proxy\": \"good\""), "{said}");
    assert!(
        said.contains("the proxy gone failed") && !said.contains("hunter2"),
        "{said}"
    );
    let output = run(&[url, "--ignore-robots", "--proxy", gone]).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("error: proxy gone: ") && !said.contains("hunter2"),
        "{said}"
    );
}

/// As `--cookies <(decrypt cookies)` has it: the second reader of a pipe finds nothing.
#[tokio::test]
async fn a_cookie_file_may_be_a_pipe_and_one_without_a_cookie_is_told_of() {
    let site = Site::builder().page("/", "page").start().await;
    let piped = async |text: &str| {
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_pgcrawl"))
            .args(["fetch", "--cookies", "/dev/stdin", &site.url("/")])
            .current_dir(std::env::temp_dir())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).await.unwrap();
        drop(stdin);
        child.wait_with_output().await.unwrap()
    };
    let output = piped("127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t1\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for request in site.requests() {
        assert_eq!(request.header("cookie"), "id=1");
    }
    let output = piped("# Netscape HTTP Cookie File\n").await;
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("there is no cookie in it"), "{said}");
}
