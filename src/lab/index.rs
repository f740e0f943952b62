//! Section c: a few new tasks among many that are done, with and without the partial index.

use std::time::Duration;

use tokio::time::Instant;

use super::error::Doing;
use super::report::{Cell, SectionReport, Table, grouped, rounded};
use super::rules::Facts;
use super::session::Session;
use super::times::Times;
use super::{Lab, Result, Section};

/// Settings of section c.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSettings {
    /// Tasks that are done. Default 500,000.
    pub done: u64,
    /// Tasks that are new, behind them. Default 1,000.
    pub new: u64,
    /// Tasks that a claim takes. Default 10.
    pub batch: u32,
    /// Claims a kind of index. Default 40.
    pub claims: u32,
}

impl Default for IndexSettings {
    fn default() -> IndexSettings {
        IndexSettings {
            done: 500_000,
            new: 1_000,
            batch: 10,
            claims: 40,
        }
    }
}

/// A way to find the new tasks.
struct Way {
    name: &'static str,
    /// The index, with its columns and predicate; none for the primary key alone.
    index: Option<(&'static str, &'static str)>,
    /// The status as a parameter of a generic plan, as an application's prepared statement may have it.
    parameter: bool,
}

/// The first is what the others are compared with.
const WAYS: [Way; 4] = [
    Way {
        name: "partial index (id) where status = 'new'",
        index: Some(("lab_partial", "(id) where status = 'new'")),
        parameter: false,
    },
    Way {
        name: "the same, the status a parameter of a generic plan",
        index: Some(("lab_partial", "(id) where status = 'new'")),
        parameter: true,
    },
    Way {
        name: "full index (status, id)",
        index: Some(("lab_full", "(status, id)")),
        parameter: false,
    },
    Way {
        name: "no index but the primary key",
        index: None,
        parameter: false,
    },
];

struct Measured {
    name: &'static str,
    times: Times,
    bytes: Option<u64>,
    reads: String,
}

pub(super) async fn run(lab: &Lab, facts: &mut Facts) -> Result<SectionReport> {
    let settings = &lab.settings.index;
    let mut session = lab.session().await?;
    session
        .run(format!(
            "create table lab_index (id bigint primary key, status text not null, payload text not null) with (autovacuum_enabled = off);
             insert into lab_index
             select n, case when n <= {done} then 'done' else 'new' end, repeat('x', 60)
             from generate_series(1, {done} + {new}) n",
            done = settings.done,
            new = settings.new
        ))
        .await?;
    // The pages are written, the hints set: else the first way would pay for all.
    session.run("vacuum analyze lab_index").await?;
    let mut measured = Vec::new();
    for way in &WAYS {
        measured.push(measure(&mut session, settings, way).await?);
    }
    session.run("drop table lab_index").await?;
    session.close().await;

    let mut report = SectionReport::new(Section::C, "The partial index", "one raw table");
    report.tables.push(table(settings, &measured));
    if let [partial, parameter, full, none] = &measured[..] {
        let ratio = |other: &Measured| ms(other.times.p50()) / ms(partial.times.p50());
        report.observe(format!(
            "a claim of {} finds its tasks in {} ms with the partial index and in {} ms without: {}x",
            settings.batch,
            rounded(ms(partial.times.p50())),
            rounded(ms(none.times.p50())),
            rounded(ratio(none))
        ));
        if let (Some(small), Some(large)) = (partial.bytes, full.bytes) {
            report.observe(format!(
                "the partial index takes {}, the full one {}: {}x; the full one's claim takes {}x as long",
                Cell::Bytes(small),
                Cell::Bytes(large),
                rounded(large as f64 / small as f64),
                rounded(ratio(full))
            ));
        }
        let fit = if parameter.reads == partial.reads {
            "still uses it"
        } else {
            "cannot use it"
        };
        report.observe(format!(
            "with the status as a parameter, a generic plan {fit} ({}): {}x",
            parameter.reads,
            rounded(ratio(parameter))
        ));
        facts.partial_index = Some(ratio(none));
    }
    Ok(report)
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

fn table(settings: &IndexSettings, measured: &[Measured]) -> Table {
    let mut table = Table::new(
        format!(
            "{} new tasks behind {} that are done, claims of {}",
            grouped(settings.new),
            grouped(settings.done),
            settings.batch
        ),
        &[
            ("index", "index"),
            ("claim_p50_ms", "claim p50"),
            ("claim_p99_ms", "claim p99"),
            ("claim_ratio", "to the first"),
            ("index_bytes", "index size"),
            ("reads", "the plan reads"),
        ],
    );
    let first = measured.first().map_or(0.0, |way| ms(way.times.p50()));
    for way in measured {
        table.row([
            Cell::text(way.name),
            Cell::ms(way.times.p50()),
            Cell::ms(way.times.p99()),
            Cell::ratio(ms(way.times.p50()), first),
            way.bytes.map_or(Cell::Nothing, Cell::Bytes),
            Cell::text(way.reads.clone()),
        ]);
    }
    table.note(format!(
        "one session, the median of {} claims, each rolled back, so without the commit; sizes by pg_relation_size.",
        settings.claims
    ));
    table
}

async fn measure(session: &mut Session, settings: &IndexSettings, way: &Way) -> Result<Measured> {
    let mut bytes = None;
    if let Some((index, definition)) = way.index {
        session
            .run(format!("create index {index} on lab_index {definition}"))
            .await?;
        let size = session
            .number(format!("select pg_relation_size('{index}')"))
            .await?;
        bytes = Some(size.unsigned_abs());
    }
    let (argument, mode) = if way.parameter {
        ("$1", "force_generic_plan")
    } else {
        ("'new'", "auto")
    };
    let declared = if way.parameter { "(text)" } else { "" };
    let call = if way.parameter { "('new')" } else { "" };
    session
        .run(format!(
            "set plan_cache_mode = {mode};
             prepare lab_claim {declared} as
             update lab_index
             set status = 'claimed'
             where id = any (array(select id from lab_index where status = {argument} order by id limit {batch} for update skip locked))
             returning id",
            batch = settings.batch
        ))
        .await?;
    let plan: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
        "explain execute lab_claim{call}"
    )))
    .persistent(false)
    .fetch_all(session.db())
    .await
    .doing("asking for a plan")?;
    let mut times = Times::default();
    for _ in 0..settings.claims {
        session.run("begin").await?;
        let began = Instant::now();
        session.run(format!("execute lab_claim{call}")).await?;
        times.push(began.elapsed());
        session.run("rollback").await?;
        // What was rolled back leaves dead entries, which no claim of a real queue has that many of.
    }
    session
        .run("deallocate lab_claim; reset plan_cache_mode")
        .await?;
    if let Some((index, _)) = way.index {
        session.run(format!("drop index {index}")).await?;
    }
    session.run("vacuum lab_index").await?;
    Ok(Measured {
        name: way.name,
        times,
        bytes,
        reads: scan(&plan),
    })
}

/// The deepest scan of a plan, without the table: the one that looks for new tasks.
fn scan(plan: &[String]) -> String {
    plan.iter()
        .filter_map(|line| {
            let at = line.find("->").map_or(0, |at| at + 2);
            let node = line.get(at..)?.trim_start();
            let node = node.split("  (").next()?;
            let node = node.split(" on ").next()?;
            node.contains("Scan").then_some((at, node))
        })
        .max_by_key(|(depth, _)| *depth)
        .map_or_else(|| "no scan".to_owned(), |(_, node)| node.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scan_that_looks_for_tasks_is_the_deepest() {
        let plan = [
            "Update on lab_index  (cost=1.00..2.00 rows=10 width=38)",
            "  InitPlan 1 (returns $1)",
            "    ->  Limit  (cost=0.28..0.9 rows=10 width=14)",
            "          ->  LockRows  (cost=0.28..1.0 rows=1 width=14)",
            "                ->  Index Scan using lab_partial on lab_index lab_index_1  (cost=0.28..1.0 rows=1 width=14)",
            "  ->  Index Scan using lab_index_pkey on lab_index  (cost=0.42..1.0 rows=10 width=38)",
        ]
        .map(str::to_owned);
        assert_eq!(scan(&plan), "Index Scan using lab_partial");
    }
}
