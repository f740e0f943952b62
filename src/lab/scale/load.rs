//! Fills the tables of a crawl with a frontier of any size, fast.

use crate::lab::Result;
use crate::lab::error::Doing;
use crate::lab::session::Session;

use super::Dataset;

/// Tasks an insert, so that a run that is interrupted ends soon.
const CHUNK: u64 = 500_000;

/// What the tables are filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    /// Tasks that are new, and all hosts.
    pub(super) open: Dataset,
    /// Tasks of the same hosts that are done, discovered before the others.
    pub(super) done: u64,
}

impl From<Dataset> for Fill {
    fn from(open: Dataset) -> Fill {
        Fill { open, done: 0 }
    }
}

/// Empties the tables of the crawl.
pub(in crate::lab) async fn empty_crawl(session: &mut Session) -> Result {
    session
        .run("truncate tasks, hosts, pages, bodies, robots restart identity cascade")
        .await
}

/// Makes the tables a frontier of this size, without statistics. Indexes and the foreign key are taken away meanwhile and made anew as they
/// were; the triggers are off, and what they would have done (awake hosts, counts) is written at once.
pub(super) async fn load(session: &mut Session, fill: impl Into<Fill>) -> Result {
    let fill = fill.into();
    empty_crawl(session).await?;
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
         from pg_index i
         where i.indrelid = 'tasks'::regclass
           and not exists (select from pg_constraint c where c.conindid = i.indexrelid)",
    )
    .fetch_all(session.db())
    .await
    .doing("reading the indexes of tasks")?;
    let keys: Vec<(String, String)> = sqlx::query_as(
        "select quote_ident(conname), pg_get_constraintdef(oid)
         from pg_constraint
         where conrelid = 'tasks'::regclass and contype in ('f', 'p')
         order by contype",
    )
    .fetch_all(session.db())
    .await
    .doing("reading the keys of tasks")?;
    for (name, _) in &indexes {
        session.run(format!("drop index {name}")).await?;
    }
    for (name, _) in &keys {
        session
            .run(format!("alter table tasks drop constraint {name}"))
            .await?;
    }
    session
        .run("alter table tasks disable trigger user; alter table hosts disable trigger user; alter table tasks set (autovacuum_enabled = off)")
        .await?;
    let Fill {
        open: Dataset { tasks, hosts },
        done,
    } = fill;
    session
        .run(format!(
            "insert into hosts (authority, has_new, polite_at)
             select 'https://host-' || n || '.test', true, now() - random() * interval '1 hour'
             from generate_series(1, {hosts}) n"
        ))
        .await?;
    let mut from = 1;
    while from <= done + tasks {
        // The last chunk of those that are done ends with them.
        let to = match from <= done {
            true => done,
            false => done + tasks,
        };
        let to = to.min(from + CHUNK - 1);
        let status = if to <= done { "done" } else { "new" };
        session
            .run(format!(
                "insert into tasks (host_id, url_digest, url, status)
                 select (n - 1) % {hosts} + 1, md5(n::text)::uuid,
                        'https://host-' || (n - 1) % {hosts} + 1 || '.test/section-' || n % 100 || '/a-page-with-a-name-' || n,
                        '{status}'
                 from generate_series({from}, {to}) n"
            ))
            .await?;
        from = to + 1;
    }
    for (_, definition) in &indexes {
        session.run(definition.clone()).await?;
    }
    for (name, definition) in &keys {
        session
            .run(format!(
                "alter table tasks add constraint {name} {definition}"
            ))
            .await?;
    }
    session
        .run(format!(
            "alter table tasks enable trigger user; alter table hosts enable trigger user;
             delete from task_count_changes;
             update task_counts set new = {tasks}, claimed = 0, done = {done}, failed = 0, excluded = 0"
        ))
        .await
}

/// Makes what was open new again, as `requeue` does, and lets vacuum tidy up behind it.
pub(super) async fn reopen(session: &mut Session, fill: Fill) -> Result {
    session
        .run(format!(
            "update tasks set status = 'new', attempts = 0, claimed_by = null, claimed_at = null
             where id > {} and status <> 'new'",
            fill.done
        ))
        .await?;
    analyze(session).await
}

/// Gives the planner its statistics, and autovacuum its work.
pub(super) async fn analyze(session: &mut Session) -> Result {
    session
        .run("alter table tasks reset (autovacuum_enabled)")
        .await?;
    for table in ["tasks", "hosts", "pages"] {
        session.run(format!("vacuum analyze {table}")).await?;
    }
    Ok(())
}
