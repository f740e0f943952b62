//! Fills the tables of a crawl with a frontier of any size, fast.

use crate::lab::Result;
use crate::lab::error::Doing;
use crate::lab::session::Session;

use super::Dataset;

/// Tasks an insert, so that a run that is interrupted ends soon.
const CHUNK: u64 = 500_000;

/// Empties the tables of the crawl.
pub(in crate::lab) async fn empty_crawl(session: &mut Session) -> Result {
    session
        .run("truncate tasks, hosts, pages, bodies, robots restart identity cascade")
        .await
}

/// Makes the tables a frontier of this size, without statistics. Indexes and the foreign key are taken away meanwhile and made anew as they
/// were; the triggers are off, and what they would have done (awake hosts, counts) is written at once.
pub(super) async fn load(session: &mut Session, dataset: Dataset) -> Result {
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
    let Dataset { tasks, hosts } = dataset;
    session
        .run(format!(
            "insert into hosts (authority, has_new, polite_at)
             select 'https://host-' || n || '.test', true, now() - random() * interval '1 hour'
             from generate_series(1, {hosts}) n"
        ))
        .await?;
    let mut from = 1;
    while from <= tasks {
        let to = tasks.min(from + CHUNK - 1);
        session
            .run(format!(
                "insert into tasks (host_id, url_digest, url)
                 select (n - 1) % {hosts} + 1, md5(n::text)::uuid,
                        'https://host-' || (n - 1) % {hosts} + 1 || '.test/section-' || n % 100 || '/a-page-with-a-name-' || n
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
             update task_counts set new = {tasks}, claimed = 0, done = 0, failed = 0, excluded = 0"
        ))
        .await
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
