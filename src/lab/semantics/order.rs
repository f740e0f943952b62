//! The order of RETURNING, and which tables FOR UPDATE locks in a join.

use super::{Scene, Trial};
use crate::lab::{Lab, Result};

pub(super) async fn trials(lab: &Lab) -> Result<Vec<Trial>> {
    Ok(vec![
        returning(
            lab,
            "RETURNING keeps the order of the choice",
            "UPDATE … = ANY (ARRAY (SELECT … ORDER BY priority LIMIT 5 …)) RETURNING",
            "update lab_jobs set status = 'claimed'
             where id = any (array(select id from lab_jobs where status = 'new' order by priority limit 5 for update skip locked))
             returning id",
        )
        .await?,
        returning(
            lab,
            "it does with a join",
            "UPDATE … FROM (SELECT … ORDER BY priority LIMIT 5 …) RETURNING",
            "update lab_jobs j set status = 'claimed'
             from (select id from lab_jobs where status = 'new' order by priority limit 5 for update skip locked) s
             where j.id = s.id
             returning j.id",
        )
        .await?,
        returning(
            lab,
            "a CTE and an ORDER BY around it do",
            "WITH taken AS (UPDATE … RETURNING) SELECT … ORDER BY priority",
            "with taken as (
                 update lab_jobs set status = 'claimed'
                 where id = any (array(select id from lab_jobs where status = 'new' order by priority limit 5 for update skip locked))
                 returning id, priority)
             select id from taken order by priority",
        )
        .await?,
        join(lab, "FOR UPDATE in a join locks every table", "FOR UPDATE SKIP LOCKED").await?,
        join(lab, "FOR UPDATE OF locks more than the one", "FOR UPDATE OF j SKIP LOCKED").await?,
    ])
}

async fn returning(
    lab: &Lab,
    said: &'static str,
    name: &'static str,
    sql: &'static str,
) -> Result<Trial> {
    let mut scene = Scene::new(lab, 1_000).await?;
    // Another order than that of the ids and of the heap.
    scene
        .one
        .run("update lab_jobs set priority = (id * 7919) % 1009; analyze lab_jobs")
        .await?;
    let wanted = scene
        .one
        .ask("select id from lab_jobs order by priority limit 5")
        .await?;
    let answer = scene.two.ask(sql).await?;
    scene.end().await?;
    let kept = answer == wanted;
    Ok(Trial {
        said,
        tried: format!("{name}; chosen: {wanted}"),
        answer: answer.to_string(),
        holds: kept,
        finding: format!(
            "{name} {} the order it chose in: {answer}",
            if kept { "keeps" } else { "does not keep" }
        ),
    })
}

/// Two workers ask for jobs of one host, joined with it.
async fn join(lab: &Lab, said: &'static str, clause: &'static str) -> Result<Trial> {
    let mut scene = Scene::new(lab, 10).await?;
    scene
        .watch
        .run("create table lab_hosts (id int primary key); insert into lab_hosts values (1)")
        .await?;
    let question = format!(
        "select j.id from lab_jobs j join lab_hosts h on h.id = j.host_id where j.status = 'new' order by j.id limit 3 {clause}"
    );
    scene.one.run("begin").await?;
    let first = scene.one.ask(question.clone()).await?;
    let second = scene.two.ask(question).await?;
    let host = scene
        .watch
        .ask("select id::bigint from lab_hosts where id = 1 for update nowait")
        .await?;
    scene.one.run("commit").await?;
    scene.watch.run("drop table lab_hosts").await?;
    scene.end().await?;
    let locked = host.code().is_some();
    Ok(Trial {
        said,
        tried: format!("two workers, jobs of one host joined with it, {clause}"),
        answer: format!(
            "the first {first}, the second {second}; the host's row asked for with NOWAIT: {host}"
        ),
        holds: locked,
        finding: format!(
            "{clause} in a join {}: beside {first} of the first worker the second gets {second}",
            if locked {
                "locks the host's row too"
            } else {
                "leaves the host's row alone"
            }
        ),
    })
}
