use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::*;

fn host(text: &str) -> HostKey {
    HostKey::parse(text).unwrap()
}

#[tokio::test]
async fn requests_keep_to_the_rate_whoever_waits() {
    let rate = Rate::new(40.0).unwrap();
    let started = Instant::now();
    join_all((0..14).map(|_| rate.wait())).await;
    // A tenth of a second's burst of four is free; ten more come at 25 ms each.
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(250), "{took:?}");
    // Far above what is right, far below one request a second.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn no_more_flights_than_the_concurrency_and_a_dropped_permit_is_free_again() {
    let ceilings = Ceilings::new(&Limits {
        concurrency: 2,
        ..Limits::default()
    });
    let first = ceilings.permit().await;
    let _second = ceilings.permit().await;
    assert_eq!(ceilings.free(), 0);
    assert!(ceilings.permit().now_or_never().is_none());
    drop(first);
    assert!(ceilings.permit().now_or_never().is_some());
}

#[tokio::test]
async fn a_busy_host_holds_back_its_own_requests_only() {
    let ceilings = Ceilings::new(&Limits {
        per_host: 2,
        ..Limits::default()
    });
    let (a, b) = (host("http://a.test"), host("http://b.test"));
    let first = ceilings.host_permit(&a).await;
    let _second = ceilings.host_permit(&a).await;
    assert!(ceilings.try_host_permit(&a).is_none());
    assert!(ceilings.try_host_permit(&b).is_some());
    let waiting = tokio::spawn({
        let ceilings = ceilings.clone();
        async move { ceilings.host_permit(&a).await }
    });
    drop(first);
    let _third = waiting.await.unwrap();
}

#[tokio::test]
async fn a_host_that_nobody_uses_costs_no_memory() {
    let ceilings = Ceilings::new(&Limits::default());
    for n in 0..1000 {
        drop(
            ceilings
                .host_permit(&host(&format!("http://h{n}.test")))
                .await,
        );
    }
    assert_eq!(ceilings.busy_hosts(), 0);
    let a = host("http://a.test");
    let held = ceilings.host_permit(&a).await;
    // A waiter that gives up and a try that fails leave the entry to its holder.
    assert!(ceilings.host_permit(&a).now_or_never().is_none());
    assert!(ceilings.try_host_permit(&a).is_none());
    assert_eq!(ceilings.busy_hosts(), 1);
    drop(held);
    assert_eq!(ceilings.busy_hosts(), 0);
}

#[test]
fn limits_of_zero_do_not_stop_everything() {
    let zero = Limits {
        per_host: 0,
        concurrency: 0,
    };
    let ceilings = Ceilings::new(&zero);
    assert!(ceilings.permit().now_or_never().is_some());
    assert!(
        ceilings
            .host_permit(&host("http://a.test"))
            .now_or_never()
            .is_some()
    );
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert!(Rate::new(rate).is_none(), "{rate}");
    }
}
