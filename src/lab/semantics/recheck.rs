//! EvalPlanQual: what a statement does with a row that changed while it waited for its lock; and whether LIMIT n comes out short.

use super::{Scene, Trial};
use crate::lab::{Lab, Result};

pub(super) async fn trials(lab: &Lab) -> Result<Vec<Trial>> {
    let mut trials = vec![
        no_longer_fits(lab).await?,
        newly_fits(lab).await?,
        out_of_order(lab).await?,
    ];
    for question in LIMITS {
        trials.push(limit(lab, question).await?);
    }
    trials.push(snapshot_runs_out(lab).await?);
    Ok(trials)
}

async fn no_longer_fits(lab: &Lab) -> Result<Trial> {
    let scene = Scene::new(lab, 5).await?;
    let (scene, answer) = scene
        .meanwhile(
            "update lab_jobs set status = 'done' where id = 1",
            "select id from lab_jobs where status = 'new' order by id for update",
        )
        .await?;
    scene.end().await?;
    let dropped = !answer.ids().contains(&1);
    Ok(Trial {
        said: "a row that no longer fits is dropped",
        tried: "row 1 of 5 becomes done while FOR UPDATE waits for it".to_owned(),
        answer: answer.to_string(),
        holds: dropped,
        finding: format!(
            "a row that stopped to fit while FOR UPDATE waited for it is {}: {answer} came back",
            if dropped {
                "dropped"
            } else {
                "returned all the same"
            }
        ),
    })
}

async fn newly_fits(lab: &Lab) -> Result<Trial> {
    let mut scene = Scene::new(lab, 5).await?;
    scene
        .one
        .run("update lab_jobs set status = 'failed' where id = 2")
        .await?;
    let question = "select id from lab_jobs where status = 'new' order by id for update";
    let (mut scene, answer) = scene
        .meanwhile(
            "update lab_jobs set priority = 1 where id = 1; update lab_jobs set status = 'new' where id = 2",
            question,
        )
        .await?;
    let again = scene.two.ask(question).await?;
    scene.end().await?;
    let unseen = !answer.ids().contains(&2);
    Ok(Trial {
        said: "a row that newly fits is not seen",
        tried: "row 2 of 5 becomes new while FOR UPDATE waits for row 1".to_owned(),
        answer: format!("{answer}; asked again, {again}"),
        holds: unseen,
        finding: format!(
            "a row that came to fit while FOR UPDATE waited is {}: {answer} came back, and {again} on asking again",
            if unseen { "not seen" } else { "seen" }
        ),
    })
}

async fn out_of_order(lab: &Lab) -> Result<Trial> {
    let scene = Scene::new(lab, 4).await?;
    let (scene, answer) = scene
        .meanwhile(
            "update lab_jobs set priority = 9 where id = 1",
            "select id from lab_jobs where status = 'new' order by priority, id for update",
        )
        .await?;
    scene.end().await?;
    let ordered = answer.ids().last() == Some(&1);
    Ok(Trial {
        said: "ORDER BY … FOR UPDATE comes in order",
        tried: "row 1 of 4 moves from the first to the last priority while FOR UPDATE waits for it"
            .to_owned(),
        answer: answer.to_string(),
        holds: ordered,
        finding: format!(
            "ORDER BY priority FOR UPDATE {} after a row changed its priority meanwhile: {answer}",
            if ordered {
                "is in order"
            } else {
                "comes out of order"
            }
        ),
    })
}

/// Three of ten are asked for, and row 1 is finished meanwhile. Whether it must be waited for.
struct Limit {
    said: &'static str,
    name: &'static str,
    sql: &'static str,
    waits: bool,
}

const LIMITS: [Limit; 4] = [
    Limit {
        said: "LIMIT n FOR UPDATE comes short",
        name: "SELECT … LIMIT 3 FOR UPDATE",
        sql: "select id from lab_jobs where status = 'new' order by id limit 3 for update",
        waits: true,
    },
    Limit {
        said: "so does a LIMIT below the lock",
        name: "SELECT … WHERE id IN (SELECT … LIMIT 3) FOR UPDATE",
        sql: "select id from lab_jobs where status = 'new' and id in (select id from lab_jobs where status = 'new' order by id limit 3) order by id for update",
        waits: true,
    },
    Limit {
        said: "and an UPDATE of a LIMIT without a lock",
        name: "UPDATE … WHERE id IN (SELECT … LIMIT 3)",
        sql: "update lab_jobs set status = 'claimed' where status = 'new' and id in (select id from lab_jobs where status = 'new' order by id limit 3) returning id",
        waits: true,
    },
    Limit {
        said: "and with SKIP LOCKED",
        name: "UPDATE … = ANY (ARRAY (SELECT … LIMIT 3 FOR UPDATE SKIP LOCKED))",
        sql: "update lab_jobs set status = 'claimed' where id = any (array(select id from lab_jobs where status = 'new' order by id limit 3 for update skip locked)) returning id",
        waits: false,
    },
];

async fn limit(lab: &Lab, limit: Limit) -> Result<Trial> {
    const DONE: &str = "update lab_jobs set status = 'done' where id = 1";
    let mut scene = Scene::new(lab, 10).await?;
    let answer = if limit.waits {
        let (back, answer) = scene.meanwhile(DONE, limit.sql).await?;
        scene = back;
        answer
    } else {
        scene.one.run(format!("begin; {DONE}")).await?;
        let answer = scene.two.ask(limit.sql).await?;
        scene.one.run("commit").await?;
        answer
    };
    scene.end().await?;
    let short = answer.ids().len() < 3;
    Ok(Trial {
        said: limit.said,
        tried: format!("{}, 10 rows fit, row 1 is finished meanwhile", limit.name),
        answer: answer.to_string(),
        holds: short,
        finding: format!(
            "{} {} when a row is finished meanwhile: {answer}, and 9 fit",
            limit.name,
            if short { "comes short" } else { "is not short" }
        ),
    })
}

async fn snapshot_runs_out(lab: &Lab) -> Result<Trial> {
    let scene = Scene::new(lab, 3).await?;
    let question = "select id from lab_jobs where status = 'new' order by id limit 3 for update";
    let (mut scene, answer) = scene
        .meanwhile(
            "update lab_jobs set status = 'done' where id = 1; insert into lab_jobs (id) values (4)",
            question,
        )
        .await?;
    let again = scene.two.ask(question).await?;
    scene.end().await?;
    let short = answer.ids().len() < again.ids().len();
    Ok(Trial {
        said: "LIMIT n FOR UPDATE comes short at the end of its snapshot",
        tried: "3 rows fit, row 1 is finished and row 4 added meanwhile".to_owned(),
        answer: format!("{answer}; asked again, {again}"),
        holds: short,
        finding: format!(
            "SELECT … LIMIT 3 FOR UPDATE {} when its snapshot holds no further row: {answer}, and {again} on asking again",
            if short { "comes short" } else { "is not short" }
        ),
    })
}
