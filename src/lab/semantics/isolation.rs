//! Isolation: REPEATABLE READ, and a lock that ends with its statement.

use super::{Scene, Trial};
use crate::lab::crew::crew;
use crate::lab::jobs::{self, Taken};
use crate::lab::report::grouped;
use crate::lab::session::{Answer, Session};
use crate::lab::{Lab, Result};

pub(super) async fn trials(lab: &Lab) -> Result<Vec<Trial>> {
    Ok(vec![
        changed_since(lab, "REPEATABLE READ fails with 40001", "FOR UPDATE").await?,
        changed_since(lab, "with SKIP LOCKED as well", "FOR UPDATE SKIP LOCKED").await?,
        workers_in(lab).await?,
        autocommit(lab).await?,
    ])
}

/// A row that is not locked, but was changed since the snapshot.
async fn changed_since(lab: &Lab, said: &'static str, clause: &'static str) -> Result<Trial> {
    let mut scene = Scene::new(lab, 5).await?;
    scene
        .two
        .run("begin isolation level repeatable read; select from lab_jobs limit 1")
        .await?;
    scene
        .one
        .run("update lab_jobs set status = 'claimed' where id = 1")
        .await?;
    let answer = scene
        .two
        .ask(format!(
            "select id from lab_jobs where status = 'new' order by id limit 3 {clause}"
        ))
        .await?;
    scene.two.run("rollback").await?;
    scene.end().await?;
    let failed = answer.code() == Some("40001");
    Ok(Trial {
        said,
        tried: format!(
            "{clause} in REPEATABLE READ, row 1 claimed by another one since its snapshot"
        ),
        answer: answer.to_string(),
        holds: failed,
        finding: format!(
            "in REPEATABLE READ {clause} answers {answer} when a row was claimed since the snapshot"
        ),
    })
}

/// Workers that claim in REPEATABLE READ with SKIP LOCKED, as an application whose default that is.
async fn workers_in(lab: &Lab) -> Result<Trial> {
    let settings = &lab.settings.semantics;
    let mut session = lab.session().await?;
    jobs::make(&mut session, settings.tasks).await?;
    let claim = format!(
        "update lab_jobs set status = 'claimed'
         where id = any (array(select id from lab_jobs where status = 'new' order by id limit {} for update skip locked))
         returning id",
        settings.batch
    );
    let thought = settings.thought;
    let (outcomes, _) = crew(
        jobs::sessions(lab, settings.workers).await?,
        |_, mut session: Session| {
            let claim = claim.clone();
            async move {
                let (mut taken, mut tried, mut failed) = (Vec::new(), 0_u64, 0_u64);
                loop {
                    // As a framework begins: the snapshot is a little older than the claim.
                    session
                        .run("begin isolation level repeatable read; select from lab_jobs limit 1")
                        .await?;
                    tokio::time::sleep(thought).await;
                    tried += 1;
                    match session.ask(claim.clone()).await? {
                        Answer::Refused(_) => {
                            failed += 1;
                            session.run("rollback").await?;
                        }
                        Answer::Ids(ids) => {
                            session.run("commit").await?;
                            if ids.is_empty() {
                                session.close().await;
                                return Ok((taken, tried, failed));
                            }
                            taken.extend(ids);
                        }
                    }
                }
            }
        },
    )
    .await?;
    jobs::drop(&mut session).await?;
    session.close().await;
    let tried: u64 = outcomes.iter().map(|(_, tried, _)| tried).sum();
    let failed: u64 = outcomes.iter().map(|(_, _, failed)| failed).sum();
    let taken = Taken {
        by_worker: outcomes.into_iter().map(|(ids, _, _)| ids).collect(),
    };
    Ok(Trial {
        said: "so a queue in REPEATABLE READ spends its time on errors",
        tried: format!(
            "{} workers, {} tasks, batches of {}, SKIP LOCKED",
            settings.workers,
            grouped(settings.tasks),
            settings.batch
        ),
        answer: format!(
            "{} of {} claims failed, {} duplicates",
            grouped(failed),
            grouped(tried),
            grouped(taken.duplicates())
        ),
        holds: failed > 0,
        finding: format!(
            "of {} claims of {} workers in REPEATABLE READ with SKIP LOCKED {} failed with 40001",
            grouped(tried),
            settings.workers,
            grouped(failed)
        ),
    })
}

/// The SELECT in a transaction of its own: its locks are gone before the UPDATE comes.
async fn autocommit(lab: &Lab) -> Result<Trial> {
    let settings = &lab.settings.semantics;
    let mut session = lab.session().await?;
    jobs::make(&mut session, settings.tasks).await?;
    let select = format!(
        "select id from lab_jobs where status = 'new' order by id limit {} for update skip locked",
        settings.batch
    );
    let thought = settings.thought;
    let (by_worker, _) = crew(
        jobs::sessions(lab, settings.workers).await?,
        |_, mut session: Session| {
            let select = select.clone();
            async move {
                let mut taken: Vec<i64> = Vec::new();
                loop {
                    let answer = session.ask(select.clone()).await?;
                    if answer.ids().is_empty() {
                        session.close().await;
                        return Ok(taken);
                    }
                    taken.extend(answer.ids());
                    tokio::time::sleep(thought).await;
                    let ids: Vec<String> = answer.ids().iter().map(i64::to_string).collect();
                    session
                        .ask(format!(
                            "update lab_jobs set status = 'claimed' where id = any (array[{}]::bigint[]) returning id",
                            ids.join(",")
                        ))
                        .await?;
                }
            }
        },
    )
    .await?;
    jobs::drop(&mut session).await?;
    session.close().await;
    let taken = Taken { by_worker };
    let duplicates = taken.duplicates();
    Ok(Trial {
        said: "SELECT … SKIP LOCKED in autocommit, then UPDATE: duplicates",
        tried: format!(
            "{} workers, {} tasks, batches of {}, {} ms between the two statements",
            settings.workers,
            grouped(settings.tasks),
            settings.batch,
            settings.thought.as_millis()
        ),
        answer: format!(
            "{} duplicates among {} claims",
            grouped(duplicates),
            grouped(taken.claims())
        ),
        holds: duplicates > 0,
        finding: format!(
            "SELECT … SKIP LOCKED in a transaction of its own, then UPDATE, handed out {} duplicates among {} claims",
            grouped(duplicates),
            grouped(taken.claims())
        ),
    })
}
