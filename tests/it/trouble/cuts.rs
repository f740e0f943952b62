//! The connection is cut in the middle of each statement of the protocol, before the server heard of it and after it was done: the call succeeds
//! by itself, and the database is as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use pgcrawl::clock::Boottime;
use pgcrawl::frontier::{
    AddressLeave, Claim, Finish, Giving, HostId, Outcome, Pace, ProxyRow, Release, Report,
    StoredRobots, WorkerId,
};
use pgcrawl::pages::PageRow;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _};

use super::{ALL, Stage, identity};
use crate::support::crawl::{broken_invariants, column};
use crate::support::wire::Cut;

/// What a process does, with the statements that it takes to.
const DEEDS: [(Deed, &[&str]); 35] = [
    (Deed::Open, &["open_crawl", "agreement"]),
    (Deed::Set, &["set_setting"]),
    (Deed::Standing, &["standing"]),
    (Deed::AddRules, &["add_rules"]),
    (Deed::Rules, &["rules_after"]),
    (Deed::Roots, &["roots_after"]),
    (Deed::ReleaseAddress, &["release_address"]),
    (Deed::Join, &["worker_start"]),
    (Deed::Beat, &["worker_beat"]),
    (Deed::Report, &["worker_report"]),
    (Deed::ReportProxies, &["report_proxies"]),
    (Deed::Neighbours, &["neighbours"]),
    (Deed::Bury, &["bury_gone"]),
    (Deed::Leave, &["worker_stop"]),
    (
        Deed::Enqueue,
        &["enqueue_hosts", "host_ids", "enqueue_tasks"],
    ),
    (Deed::Claim, &["claim"]),
    (Deed::Begin, &["begin"]),
    (Deed::Validators, &["validators"]),
    (Deed::Finish, &["finish"]),
    (Deed::GiveBack, &["give_back"]),
    (Deed::Release, &["release"]),
    (Deed::Answered, &["host_answered"]),
    (Deed::HostFailed, &["host_failed"]),
    (Deed::GiveUp, &["retry_given_up"]),
    (Deed::Defer, &["defer"]),
    (Deed::SetDelay, &["set_delay"]),
    (Deed::StoreRobots, &["store_robots"]),
    (Deed::RobotsFailed, &["robots_failed"]),
    (Deed::RobotsOf, &["robots_of"]),
    (Deed::Park, &["park"]),
    (Deed::NextReady, &["next_ready"]),
    (
        Deed::Recycle,
        &[
            "recycle_expired",
            "bury",
            "recycle_dead",
            "free_hosts",
            "clear",
        ],
    ),
    (Deed::Promote, &["promote", "fold_counts"]),
    (
        Deed::End,
        &[
            "has_tasks",
            "finished",
            "parked_hosts",
            "given_up_hosts",
            "ending",
        ],
    ),
    (Deed::Refresh, &["refresh_hosts", "refresh_tasks"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Open,
    Set,
    Standing,
    AddRules,
    Rules,
    Roots,
    ReleaseAddress,
    Join,
    Beat,
    Report,
    ReportProxies,
    Neighbours,
    Bury,
    Leave,
    Enqueue,
    Claim,
    Begin,
    Validators,
    Finish,
    GiveBack,
    Release,
    Answered,
    HostFailed,
    GiveUp,
    Defer,
    SetDelay,
    StoreRobots,
    RobotsFailed,
    RobotsOf,
    Park,
    NextReady,
    Recycle,
    Promote,
    End,
    Refresh,
}

fn statement(name: &str) -> String {
    let file = format!("{}/src/frontier/sql/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).expect(&file)
}

/// What came before.
struct Scene<'a> {
    stage: &'a Stage,
    me: WorkerId,
    other: WorkerId,
    claim: Claim,
}

/// Makes a database as the migrations left it. Quicker than a new one.
async fn afresh(stage: &Stage) {
    const AFRESH: &str = "
        do $$
        declare
            name text;
            has_rows boolean;
            first boolean := to_regnamespace('saved') is null;
        begin
            set local synchronous_commit = off;
            create schema if not exists saved;
            if first then
                for name in select quote_ident(tablename) from pg_tables where schemaname = 'public' and tablename <> '_sqlx_migrations' loop
                    execute 'select exists (select from ' || name || ')' into has_rows;
                    if has_rows then
                        execute 'create table saved.' || name || ' as table ' || name;
                    end if;
                end loop;
            end if;
            -- Not truncate, which syncs a dozen files. Twice: triggers write, and keys hold some back.
            for pass in 1..2 loop
                for name in select quote_ident(tablename) from pg_tables where schemaname = 'public' and tablename <> '_sqlx_migrations' loop
                    begin
                        execute 'delete from ' || name;
                    exception when foreign_key_violation then null;
                    end;
                end loop;
            end loop;
            perform setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) from pg_sequences where schemaname = 'public';
            for name in select quote_ident(tablename) from pg_tables where schemaname = 'saved' loop
                execute 'insert into ' || name || ' overriding system value table saved.' || name;
            end loop;
        end
        $$";
    stage
        .db
        .pool
        .execute(AFRESH)
        .await
        .expect("its tables can be emptied");
}

impl<'a> Scene<'a> {
    async fn set(stage: &'a Stage, deed: Deed) -> Scene<'a> {
        afresh(stage).await;
        let (me, other) = (stage.worker(1).await, stage.worker(2).await);
        stage
            .seed(
                me,
                &[
                    "https://a.example/1",
                    "https://a.example/2",
                    "https://b.example/1",
                    "https://b.example/2",
                ],
            )
            .await;
        let frontier = &stage.frontier;
        frontier.open(1, &BTreeMap::new()).await.unwrap();
        let mut claim = Claim {
            hosts: Vec::new(),
            empty: Vec::new(),
            sent: Boottime::now(),
            took: Duration::ZERO,
        };
        if deed != Deed::Claim {
            claim = frontier.claim(me, ALL).await.unwrap();
            assert_eq!(claim.hosts.len(), 2);
        }
        let typed = match deed {
            Deed::Begin => "update tasks set expiries = 1",
            Deed::Answered => "update hosts set failures = 3, note = 'before'",
            Deed::GiveUp => {
                "update tasks set status = 'failed', available_at = now() + interval '1 h'"
            }
            Deed::Recycle => {
                "update tasks set claimed_at = now() - interval '1 day' where url like '%1'; \
                 update workers set heartbeat = now() - interval '1 day'"
            }
            Deed::Promote | Deed::Refresh => {
                "update tasks set status = 'failed', available_at = now() where url like '%1'"
            }
            Deed::Validators => {
                "insert into pages (task_id, claim_version, http_status, reading, etag) select id, 1, 200, 7, 'x' from tasks"
            }
            Deed::Park => {
                "update tasks set status = 'excluded'; update hosts set has_new = true, held_by = null"
            }
            Deed::RobotsOf => {
                "update hosts set robots_until = now() + interval '1 day'; \
                 insert into robots (host_id) select id from hosts"
            }
            _ => "select",
        };
        stage
            .db
            .pool
            .execute(AssertSqlSafe(typed))
            .await
            .expect(typed);
        Scene {
            stage,
            me,
            other,
            claim,
        }
    }

    /// Does it, and tells what it answered. What has no repetition of its own is repeated here, as its caller does.
    async fn play(&self, deed: Deed) -> String {
        let (frontier, me) = (&self.stage.frontier, self.me);
        let host = self.claim.hosts.first();
        let id = host.map_or(HostId(1), |host| host.id);
        let task = host.and_then(|host| host.tasks.first());
        match deed {
            Deed::Open => {
                let proposed = [("crawl.max_depth".to_owned(), Value::from(3))].into();
                format!("{:?}", frontier.open(1, &proposed).await.unwrap())
            }
            // Where the answer was lost it is told that another change came between, as its caller has to expect.
            Deed::Set => loop {
                let agreed = frontier.agreement(1).await.unwrap().unwrap();
                let value = Value::from(4);
                let _ = frontier.set("crawl.max_depth", &value, &agreed, None).await;
                let now = frontier.agreement(1).await.unwrap().unwrap();
                if now.settings.get("crawl.max_depth") == Some(&value) {
                    break format!("{now:?}");
                }
            },
            Deed::Standing => format!("{:?}", frontier.standing().await.unwrap()),
            Deed::AddRules => {
                let rules = [("a.example".to_owned(), "a.example".to_owned())];
                format!("{:?}", frontier.add_rules(&rules, "seed").await.unwrap())
            }
            Deed::Roots => format!("{:?}", frontier.roots_after(0).await.unwrap()),
            Deed::ReleaseAddress => {
                let (ip, second) = (IpAddr::from([127, 0, 0, 1]), Duration::from_secs(1));
                let leave = frontier.hold_address(me, ip, second, second).await;
                let AddressLeave::Held(hold) = leave.unwrap() else {
                    panic!("nobody else holds it");
                };
                let released = frontier.release_address(me, hold, Boottime::now(), second);
                format!("{:?}", released.await.unwrap())
            }
            Deed::Rules => format!("{:?}", frontier.rules_after(0).await.unwrap()),
            Deed::Join => {
                frontier.join(&identity(3)).await.unwrap();
                String::new()
            }
            Deed::Beat => loop {
                if let Ok(alive) = frontier.beat(me).await {
                    break format!("{alive}");
                }
            },
            Deed::Report => format!(
                "{:?}",
                frontier.report(me, Report::default()).await.unwrap()
            ),
            Deed::ReportProxies => {
                let row = ProxyRow {
                    label: "exit".to_owned(),
                    state: "healthy",
                    ..ProxyRow::default()
                };
                format!("{:?}", frontier.report_proxies(me, &[row]).await.unwrap())
            }
            Deed::Neighbours => {
                format!("{:?}", frontier.neighbours("a machine", me).await.unwrap())
            }
            Deed::Bury => format!("{:?}", frontier.bury(&[self.other]).await.unwrap()),
            Deed::Leave => loop {
                if frontier.leave(self.other).await.is_ok() {
                    break String::new();
                }
            },
            Deed::Enqueue => {
                self.stage
                    .seed(me, &["https://a.example/3", "https://c.example/"])
                    .await;
                String::new()
            }
            Deed::Claim => {
                let claim = frontier.claim(me, ALL).await.unwrap();
                let tasks = claim.hosts.iter().flat_map(|host| &host.tasks);
                format!(
                    "{:?}",
                    tasks
                        .map(|task| (&task.url, task.attempt, task.expiries))
                        .collect::<Vec<_>>()
                )
            }
            Deed::Begin => format!("{:?}", frontier.begin(me, task.unwrap()).await.unwrap()),
            Deed::Validators => {
                let tasks = [(task.unwrap().id, 7)];
                let stored = frontier.validators_of(&tasks, false).await;
                format!("{:?}", stored.unwrap())
            }
            Deed::Finish => {
                let finish = Finish {
                    task: task.unwrap().id,
                    claim_version: task.unwrap().claim_version,
                    outcome: Outcome::Done { reason: None },
                    page: Some(PageRow::without_answer("", "", Duration::ZERO, None)),
                    links: vec![super::link(id, "https://a.example/found")],
                    edges: Vec::new(),
                };
                // Whether it was accepted is not told any more where the answer was lost.
                frontier.finish(me, &[finish]).await.unwrap();
                String::new()
            }
            Deed::GiveBack => {
                let giving = Giving {
                    task: task.unwrap().id,
                    claim_version: task.unwrap().claim_version,
                };
                format!("{:?}", frontier.give_back(me, &[giving]).await.unwrap())
            }
            Deed::Release => {
                let release = Release {
                    host: id,
                    hold: host.unwrap().hold.unwrap(),
                    last_fetch: Some(Boottime::now()),
                    took: Duration::ZERO,
                    answered: true,
                    goes_on: false,
                };
                format!("{:?}", frontier.release(me, &[release]).await.unwrap())
            }
            Deed::Answered => format!("{:?}", frontier.answered(&[id]).await.unwrap()),
            Deed::HostFailed => {
                let pauses = [Duration::from_secs(60)];
                let failed = frontier.host_failed(id, 5, &pauses, "refused", false).await;
                format!("{:?}", failed.unwrap())
            }
            Deed::GiveUp => {
                let failed = frontier.host_failed(id, 1, &[], "refused", false).await;
                format!("{:?}", failed.unwrap())
            }
            Deed::Defer => format!(
                "{:?}",
                frontier
                    .defer(id, Duration::from_secs(60), Pace::Slower, Some("patience"))
                    .await
                    .unwrap()
            ),
            Deed::SetDelay => format!(
                "{:?}",
                frontier
                    .set_delay(id, Some(Duration::from_secs(9)))
                    .await
                    .unwrap()
            ),
            Deed::StoreRobots => {
                let robots = StoredRobots {
                    http_status: Some(404),
                    hops: 0,
                    crawl_delay: None,
                    error: None,
                    final_url: None,
                    sitemaps: Vec::new(),
                    body: None,
                    ttl: Duration::from_secs(60),
                };
                format!("{:?}", frontier.store_robots(id, &robots).await.unwrap())
            }
            Deed::RobotsFailed => {
                let wait = Duration::from_secs(60);
                let failed = frontier
                    .robots_failed(id, wait, 3, Some(500), None, "robots.txt: 500")
                    .await;
                format!("{:?}", failed.unwrap())
            }
            Deed::RobotsOf => format!("{}", frontier.robots_of(&[id]).await.unwrap().len()),
            Deed::Park => {
                frontier.park(&[id]).await.unwrap();
                String::new()
            }
            Deed::NextReady => format!("{}", frontier.next_ready().await.unwrap().is_some()),
            Deed::Recycle => {
                frontier.recycle().await.unwrap();
                String::new()
            }
            Deed::Promote => {
                frontier.promote().await.unwrap();
                format!("{:?}", frontier.fold_counts().await.unwrap())
            }
            Deed::End => format!(
                "{:?} {:?} {:?}",
                frontier.has_tasks().await.unwrap(),
                frontier.finished().await.unwrap(),
                frontier.ending().await.unwrap()
            ),
            Deed::Refresh => {
                frontier.refresh().await.unwrap();
                String::new()
            }
        }
    }

    /// All that a crawl goes by. How often a task was claimed is left out: an answer that was lost makes it one more.
    async fn state(&self) -> Vec<String> {
        const QUESTIONS: [&str; 9] = [
            "select url, status, attempts, expiries, reason, claimed_by, available_at > now(), begun_version from tasks order by url",
            "select authority, has_new, held_by, round(extract(epoch from polite_at - now()) / 60), failures, pauses, robots_failures, given_up_at is null,
                    round(extract(epoch from deferred_until - now()) / 60), delay_ms, pace_ms, robots_until is null, note from hosts order by authority",
            "select count(*), min(claim_version), max(claim_version) from pages",
            "select new, claimed, done, failed, excluded from progress",
            "select sum(seeded), sum(discovered), sum(done), sum(failed), sum(excluded), sum(bytes) from worker_counts",
            "select pid, cleared_at is null from workers where stopped_at is null order by pid",
            "select count(*), min(http_status) from robots",
            "select rule, host from scope_rules order by id",
            "select key, value from settings order by key",
        ];
        let mut state = Vec::new();
        for question in QUESTIONS {
            state.extend(column(&self.stage.db.pool, question).await);
        }
        state
    }
}

async fn undisturbed(stage: &Stage, deed: Deed) -> (String, Vec<String>) {
    let scene = Scene::set(stage, deed).await;
    (scene.play(deed).await, scene.state().await)
}

async fn cut_everywhere(cut: Cut) {
    let stage = &Stage::new().await;
    for (deed, statements) in DEEDS {
        let (answer, state) = undisturbed(stage, deed).await;
        for name in statements {
            let scene = Scene::set(stage, deed).await;
            scene.stage.wire.arm(&statement(name), cut);
            let disturbed = scene.play(deed).await;
            assert!(
                !scene.stage.wire.is_armed(),
                "{deed:?} does not execute {name}"
            );
            assert_eq!(disturbed, answer, "{name}, cut {cut:?}");
            assert_eq!(scene.state().await, state, "{name}, cut {cut:?}");
            assert_eq!(
                broken_invariants(&scene.stage.db.pool).await,
                Vec::<String>::new(),
                "{name}, cut {cut:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_connection_cut_before_the_server_got_the_statement_changes_nothing() {
    cut_everywhere(Cut::BeforeSent).await;
}

#[tokio::test]
async fn a_connection_cut_before_the_answer_came_changes_nothing() {
    cut_everywhere(Cut::BeforeAnswered).await;
}

#[test]
fn each_statement_of_the_frontier_is_cut() {
    /// The first has tests of its own. Of the others, what an answer that was lost took (a stretch of the rate, the hold of an address) is
    /// not told from somebody else's, and ends by itself.
    // Tried on their own, or harmless by their nature: a stretch or a hold that is lost ends by itself, a nudge is a hint, and what an
    // operator changes does not match again.
    const BESIDE: [&str; 49] = [
        "block_list",
        "block",
        "unblock",
        "blocks_after",
        "hosts_with_new",
        "new_tasks_of",
        // To insert what is there already is nothing, and the rest is written as what it is.
        "enqueue_found",
        "note_entries",
        "name_sitemaps",
        "raise_sitemaps",
        "known_tasks",
        "prefer_tasks",
        "sitemap_read",
        "sitemap_chain",
        "sitemaps_of",
        // Hints.
        "count_links",
        "stray",
        "take_rate",
        "hold_address",
        "nudge",
        "free_addresses",
        "exclude_tasks",
        "half_built_indexes",
        "index_sizes",
        "known_hosts",
        "old_transactions",
        "operator_parks",
        "operator_unparks",
        "pause",
        "reopen_tasks",
        "reprioritise_hosts",
        "reprioritise_tasks",
        "some_hosts",
        // Totals, watermarks and looks: said twice, they say the same.
        "bring_back",
        "close_host",
        "fold_shapes",
        "host_tasks_after",
        "host_urls",
        "host_visits",
        "judge_tasks",
        "judged_after",
        "parked_shapes",
        "readmit",
        "report_rejections",
        "shape_pages",
        "shapes_of",
        "spent",
        "unpark_shape",
        "way",
    ];
    let folder = format!("{}/src/frontier/sql", env!("CARGO_MANIFEST_DIR"));
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            name.trim_end_matches(".sql").to_owned()
        })
        .collect();
    let cut: BTreeSet<String> = DEEDS
        .iter()
        .flat_map(|(_, statements)| statements.iter().copied())
        .chain(BESIDE)
        .map(str::to_owned)
        .collect();
    assert_eq!(files, cut);
}
