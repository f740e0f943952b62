//! What operators do to a crawl, at rest and while it runs, by the typed hands, the program, and SQL.

mod condition;
mod hosts;
mod live;
mod program;
mod reindex;
mod scope;
mod tasks;
mod typed;

use std::{ops::ControlFlow, time::Duration};

use pgcrawl::{
    canon::PageUrl,
    frontier::{
        Appetite, Claim, Finish, Frontier, FrontierSettings, Identity, Outcome, WorkerId,
        operate::{Change, Condition, Operator, Tally},
    },
    pages::PageRow,
};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::{
    crawl::{Setup, broken_invariants, column, number},
    db::TestDb,
};

/// A database of its own, with an operator and a worker on it.
struct Ground {
    db: TestDb,
    operator: Operator,
    worker: WorkerId,
}

impl Ground {
    async fn new() -> Ground {
        Ground::with(FrontierSettings {
            obey_robots: false,
            ..Setup::quick().frontier
        })
        .await
    }

    async fn with(settings: FrontierSettings) -> Ground {
        let db = TestDb::new().await;
        let frontier = Frontier::new(db.pool.clone(), settings);
        frontier
            .open(pgcrawl::canon::VERSION, &Default::default())
            .await
            .unwrap();
        let worker = frontier
            .join(&Identity {
                name: "a worker".to_owned(),
                version: "test".to_owned(),
                machine: "a machine".to_owned(),
                host_name: "host".to_owned(),
                pid: 1,
                process_started: "then".to_owned(),
            })
            .await
            .unwrap();
        Ground {
            db,
            operator: Operator::new(frontier),
            worker,
        }
    }

    fn frontier(&self) -> &Frontier {
        self.operator.frontier()
    }

    async fn seed(&self, urls: &[&str]) {
        let urls: Vec<pgcrawl::frontier::Seed> = urls
            .iter()
            .map(|url| PageUrl::parse(url).unwrap().into())
            .collect();
        self.frontier()
            .enqueue_seeds(self.worker, &urls)
            .await
            .unwrap();
    }

    async fn claim(&self) -> Claim {
        let all = Appetite {
            hosts: 1_000,
            tasks: 10_000,
            tasks_per_host: 1_000,
        };
        self.frontier().claim(self.worker, all).await.unwrap()
    }

    /// The URLs of a claim, in its order.
    async fn claimed_urls(&self) -> Vec<String> {
        let claim = self.claim().await;
        claim
            .hosts
            .into_iter()
            .flat_map(|host| host.tasks)
            .map(|task| task.url)
            .collect()
    }

    /// Claims all there is, and ends each task as `end` says of its URL.
    async fn end_all(&self, end: impl Fn(&str) -> Outcome) {
        let finishes: Vec<Finish> = self
            .claim()
            .await
            .hosts
            .into_iter()
            .flat_map(|host| host.tasks)
            .map(|task| Finish {
                task: task.id,
                claim_version: task.claim_version,
                outcome: end(&task.url),
                page: Some(page()),
                links: Vec::new(),
                edges: Vec::new(),
            })
            .collect();
        let accepted = self
            .frontier()
            .finish(self.worker, &finishes)
            .await
            .unwrap();
        assert!(accepted.iter().all(|accepted| *accepted));
    }

    async fn condition(&self, text: &str) -> Condition {
        self.operator.condition(text).await.expect(text)
    }

    async fn change(&self, change: Change, condition: &str) -> Tally {
        let which = self.condition(condition).await;
        let counted = self.operator.count(change, &which, &mut on).await.unwrap();
        let changed = self.operator.change(change, &which, &mut on).await.unwrap();
        assert_eq!(
            (counted.tasks, counted.hosts, counted.ended),
            (changed.tasks, changed.hosts, changed.ended),
            "the dry run differs"
        );
        changed
    }

    async fn typed(&self, sql: &str) {
        self.db
            .pool
            .execute(AssertSqlSafe(sql.to_owned()))
            .await
            .expect(sql);
    }

    async fn number(&self, sql: &str) -> i64 {
        number(&self.db.pool, sql).await
    }

    async fn column(&self, sql: &str) -> Vec<String> {
        column(&self.db.pool, sql).await
    }

    async fn assert_sound(&self) {
        assert_eq!(broken_invariants(&self.db.pool).await, Vec::<String>::new());
    }
}

/// Waits until a query answers more than 0.
async fn until(db: &TestDb, sql: &str) {
    let seen = async {
        while number(&db.pool, sql).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), seen)
        .await
        .expect(sql);
}

/// Goes on to the end.
fn on(_: &Tally) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn page() -> PageRow {
    PageRow {
        http_status: Some(503),
        error: None,
        error_detail: None,
        ..PageRow::without_answer("", "", Duration::from_millis(5), None)
    }
}

fn done() -> Outcome {
    Outcome::Done { reason: None }
}

fn failed(reason: &str, due: Option<Duration>) -> Outcome {
    Outcome::Failed {
        reason: reason.to_owned(),
        detail: None,
        due,
        charged: true,
    }
}
