//! What all processes of a crawl agree on, also when they begin it at once.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use pgcrawl::db::{DbSettings, connect, migrate};
use pgcrawl::frontier::Frontier;

use super::{Ground, identity, settings};
use crate::support::db::bare_database;

#[tokio::test]
async fn rules_are_read_page_by_page_and_kept_once() {
    let ground = Ground::new().await;
    let rules: Vec<(String, String)> = (0..10_050)
        .map(|n| (format!("h{n}.example"), format!("h{n}.example")))
        .collect();
    ground.frontier.add_rules(&rules, "seed").await.unwrap();
    ground
        .frontier
        .add_rules(&rules[..3], "redirect")
        .await
        .unwrap();
    let first = ground.frontier.rules_after(0).await.unwrap();
    assert_eq!(first.len(), 10_000);
    let rest = ground.frontier.rules_after(first[9_999].id).await.unwrap();
    assert_eq!(rest.len(), 50);
    assert!(first.iter().chain(&rest).map(|rule| rule.id).is_sorted());
    let mut read: Vec<_> = first
        .into_iter()
        .chain(rest)
        .map(|rule| (rule.rule, rule.host))
        .collect();
    let mut all = rules;
    read.sort_unstable();
    all.sort_unstable();
    assert!(read == all);
}

#[tokio::test]
async fn eight_processes_begin_a_crawl_at_once_on_an_empty_database() {
    let url = bare_database("UTF8").await;
    let begin = async |number: usize| {
        let settings = DbSettings {
            max_connections: 2,
            ..DbSettings::default()
        };
        let pool = connect(&url, &settings).await.unwrap();
        migrate(&pool).await.unwrap();
        let frontier = Frontier::new(pool, super::settings());
        frontier.open(1, &BTreeMap::new()).await.unwrap();
        let rule = ("a.example".to_owned(), "a.example".to_owned());
        frontier.add_rules(&[rule], "seed").await.unwrap();
        let me = identity(&format!("process {number}"));
        let worker = frontier.join(&me).await.unwrap();
        let seed = super::url("https://a.example/");
        (
            worker.0,
            frontier
                .enqueue_seeds(worker, &[seed.into()])
                .await
                .unwrap(),
        )
    };
    let (mut workers, fresh): (Vec<i32>, Vec<u64>) =
        join_all((0..8).map(begin)).await.into_iter().unzip();
    workers.sort_unstable();
    workers.dedup();
    assert_eq!((workers.len(), fresh.iter().sum()), (8, 1_u64));
    let pool = connect(&url, &DbSettings::default()).await.unwrap();
    let frontier = Frontier::new(pool, settings());
    assert_eq!(frontier.rules_after(0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn rules_are_committed_in_the_order_of_their_ids() {
    let ground = Ground::new().await;
    let mut slow = ground.db.pool.begin().await.unwrap();
    sqlx::query("select add_scope_rules(array['a.example'], array['a.example'], 'seed')")
        .execute(&mut *slow)
        .await
        .unwrap();
    let second = [("b.example".to_owned(), "b.example".to_owned())];
    let add = ground.frontier.add_rules(&second, "seed");
    let commit = async {
        // Who comes second must wait: had it committed first, a reader would take its id for the last.
        while ground.number("select count(*) from blocked").await == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ground.frontier.rules_after(0).await.unwrap().len(), 0);
        slow.commit().await.unwrap();
    };
    let (added, ()) = tokio::join!(add, commit);
    added.unwrap();
    let rules = ground.frontier.rules_after(0).await.unwrap();
    let names: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
    assert_eq!(names, ["a.example", "b.example"]);
}
