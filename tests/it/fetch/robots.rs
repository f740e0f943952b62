//! Getting a robots.txt.

use super::*;

const BUDGET: Duration = Duration::from_secs(20);

fn host(site: &Site) -> HostKey {
    HostKey::parse(&site.authority()).unwrap()
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_not() {
    let chain = |length: usize| {
        let mut site = Site::builder().redirect("/robots.txt", 301, "/r1");
        for n in 1..length {
            site = site.redirect(&format!("/r{n}"), 302, format!("/r{}", n + 1));
        }
        site.page(&format!("/r{length}"), "User-agent: *\nDisallow: /no/")
    };
    let site = chain(5).start().await;
    let found = fetcher(settings())
        .fetch_robots(&host(&site), BUDGET, Duration::ZERO)
        .await;
    assert_eq!((found.status, found.hops), (Some(200), 5));
    assert_eq!(found.body, "User-agent: *\nDisallow: /no/");
    assert_eq!(found.final_url.as_str(), site.url("/r5"));
    assert!(found.error.is_none());

    let site = chain(12).start().await;
    let found = fetcher(settings())
        .fetch_robots(&host(&site), BUDGET, Duration::ZERO)
        .await;
    assert_eq!((found.status, found.hops), (Some(302), 5));
    assert_eq!(found.error.unwrap().class(), "too_many_redirects");
    assert_eq!(site.requests().len(), 6);
}

#[tokio::test]
async fn a_redirect_back_to_a_host_keeps_its_delay_and_one_elsewhere_does_not() {
    let pause = Duration::from_millis(200);
    let near = Site::builder()
        .redirect("/robots.txt", 301, "/r1")
        .redirect("/r1", 302, "/r2")
        .page("/r2", "User-agent: *")
        .start()
        .await;
    let found = fetcher(settings())
        .fetch_robots(&host(&near), BUDGET, pause)
        .await;
    assert_eq!((found.status, found.hops), (Some(200), 2));
    let log = near.requests();
    for pair in log.windows(2) {
        assert!(pair[1].started - pair[0].ended.unwrap() >= pause);
    }

    let for_ever = Duration::MAX;
    let far = Site::builder()
        .redirect("/robots.txt", 301, near.url("/r2"))
        .start()
        .await;
    let found = fetcher(settings())
        .fetch_robots(&host(&far), BUDGET, for_ever)
        .await;
    assert_eq!((found.status, found.hops), (Some(200), 1));
    let found = fetcher(settings())
        .fetch_robots(&host(&near), BUDGET, for_ever)
        .await;
    assert_eq!(
        (found.status, found.error.unwrap().class()),
        (None, "total_timeout")
    );
    assert_eq!(near.count("/r1"), 1, "a hop without time is not made");
}

#[tokio::test]
async fn a_status_comes_with_the_wait_it_asks_for() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "7".parse().unwrap());
    let site = Site::builder()
        .sequence("/robots.txt", vec![(429, headers, String::new())])
        .start()
        .await;
    let found = fetcher(settings())
        .fetch_robots(&host(&site), BUDGET, Duration::ZERO)
        .await;
    assert_eq!(found.status, Some(429));
    assert_eq!(found.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_long_file_is_read_to_512_kib_and_a_coded_one_is_decoded() {
    let long = format!("User-agent: *\n{}", "Disallow: /x\n".repeat(100_000));
    let coded = gzip(long.as_bytes()).await;
    let site = Site::builder()
        .answer("/robots.txt", move |_| {
            ([("content-encoding", "gzip")], coded.clone()).into_response()
        })
        .start()
        .await;
    let found = fetcher(settings())
        .fetch_robots(&host(&site), BUDGET, Duration::ZERO)
        .await;
    assert_eq!(found.body.len(), 512 * 1024);
    assert!(long.as_bytes().starts_with(&found.body));
}

#[tokio::test]
async fn rules_that_are_cut_off_are_no_answer() {
    const RULES: &[u8] = b"User-agent: *\nDisallow: /a/\n";
    let coded = gzip(&RULES.repeat(1000)).await;
    let raw = RawListener::start(move |request| {
        let status = match request.head.contains("missing") {
            true => "404 Not Found",
            false => "200 OK",
        };
        let slow = request.head.contains("slow");
        let (length, coding, body, then) = match slow {
            true => (999, "identity", RULES, Then::Hang),
            false => (
                coded.len() / 2,
                "gzip",
                &coded[..coded.len() / 2],
                Then::Close,
            ),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\ncontent-encoding: {coding}\r\n\r\n"
        );
        ([head.as_bytes(), body].concat(), then)
    })
    .await;
    let host = HostKey::parse(raw.url("").as_str()).unwrap();
    for (agent, status, class) in [
        ("slow", None, Some("total_timeout")),
        ("stopped", None, Some("incomplete")),
        ("slow missing", Some(404), None),
        ("stopped missing", Some(404), None),
    ] {
        let short = FetchSettings {
            user_agent: agent.to_owned(),
            total_timeout: Duration::from_millis(300),
            ..settings()
        };
        let found = fetcher(short)
            .fetch_robots(&host, BUDGET, Duration::ZERO)
            .await;
        let error = found.error.as_ref().map(FetchError::class);
        assert_eq!((found.status, error), (status, class), "{agent}");
        assert!(found.body.is_empty() == status.is_none(), "{agent}");
    }
}

#[tokio::test]
async fn no_answer_is_a_value_with_its_error() {
    let raw = RawListener::start(|_| (Vec::new(), Then::Close)).await;
    let host = HostKey::parse(raw.url("").as_str()).unwrap();
    let found = fetcher(settings())
        .fetch_robots(&host, BUDGET, Duration::ZERO)
        .await;
    assert_eq!(
        (found.status, found.error.unwrap().class()),
        (None, "reset")
    );
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let inner = Site::builder().robots("User-agent: *").start().await;
    let site = Site::builder()
        .redirect("/robots.txt", 302, inner.url_at("127.0.0.2", "/robots.txt"))
        .start()
        .await;
    let guard = PrivateGuard::new(|host| host == "127.0.0.1");
    let found = Fetcher::new(settings(), guard)
        .unwrap()
        .fetch_robots(&host(&site), BUDGET, Duration::ZERO)
        .await;
    assert_eq!(
        (found.status, found.error.unwrap().class()),
        (None, "private_address")
    );
    assert!(inner.requests().is_empty());
}
