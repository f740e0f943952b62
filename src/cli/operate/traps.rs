//! `pgcrawl traps`: shapes of URLs that are left out, and one that is taken in again.

use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use super::{Common, Desk, counted, hinted};
use crate::canon::PageUrl;
use crate::cli::database::with_hint;
use crate::cli::{Exit, output};
use crate::frontier::operate::ExcludedByShape;
use crate::frontier::{HostId, TaskId};
use crate::scope::{Reason, shape};
use crate::status;

/// Flags of `traps`.
#[derive(Debug, Args)]
pub struct TrapsArgs {
    #[command(subcommand)]
    command: TrapsCommand,
}

#[derive(Debug, Subcommand)]
enum TrapsCommand {
    /// Print the shapes that are parked, or were, with what their pages brought
    Show {
        #[command(flatten)]
        common: Common,
    },
    /// Visit a shape whatever its pages bring, from now on
    ///
    /// What was left out of it comes back. A process of a running crawl may leave out links to it for two seconds more; said again, this brings
    /// back what became a row meanwhile.
    Unpark {
        /// Its number, as `traps show` prints it
        shape: i32,

        #[command(flatten)]
        common: Common,
    },
}

impl TrapsArgs {
    pub(super) fn common(&self) -> &Common {
        match &self.command {
            TrapsCommand::Show { common } | TrapsCommand::Unpark { common, .. } => common,
        }
    }

    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        match self.command {
            TrapsCommand::Show { .. } => show(desk).await,
            TrapsCommand::Unpark { shape, .. } => unpark(desk, shape).await,
        }
    }
}

async fn show(desk: &Desk) -> anyhow::Result<Exit> {
    let shapes = status::trap_shapes(desk.operator.frontier().pool()).await?;
    for shape in &shapes {
        if desk.common.json {
            output::line(serde_json::to_string(shape)?)?;
            continue;
        }
        let state = if shape.parked_at.is_some() {
            "parked"
        } else {
            "unparked"
        };
        output::line(format_args!(
            "{}  {state}  {}{}  {} different of the last {} pages",
            shape.shape_id, shape.authority, shape.shape, shape.different, shape.looked_at
        ))?;
    }
    if shapes.is_empty() {
        desk.say("no shape of URLs was parked");
    }
    Ok(Exit::Finished)
}

async fn unpark(desk: &Desk, id: i32) -> anyhow::Result<Exit> {
    let found = match desk.common.dry_run {
        true => {
            let shapes = status::trap_shapes(desk.operator.frontier().pool()).await?;
            let parked = shapes.into_iter().find(|one| {
                one.shape_id == id && (one.parked_at.is_some() || one.kept_at.is_some())
            });
            parked.map(|one| (HostId(one.host_id), one.shape))
        }
        false => desk.operator.unpark_shape(id).await.map_err(hinted)?,
    };
    let Some((host, shape)) = found else {
        let hint = "`pgcrawl traps show` prints them";
        return Err(with_hint(
            anyhow::anyhow!("no parked shape has the number {id}"),
            Some(hint.to_owned()),
        ));
    };
    let mut brought_back = 0;
    let mut after = Uuid::nil();
    loop {
        let looked = desk
            .operator
            .host_tasks_after(host, after, ExcludedByShape::Yes)
            .await;
        let (last, tasks) = looked.map_err(hinted)?;
        let Some(last) = last else { break };
        let of_it = tasks.into_iter().filter(|(_, url)| {
            PageUrl::parse(url).is_ok_and(|url| shape::of(url.as_url()).as_ref() == Some(&shape))
        });
        let tasks: Vec<TaskId> = of_it.map(|(task, _)| task).collect();
        brought_back += match desk.common.dry_run {
            true => tasks.len() as u64,
            false => {
                let reasons = [Reason::Shape.as_str()];
                let changed = desk.operator.bring_back(&tasks, &reasons).await;
                changed.map_err(hinted)?
            }
        };
        after = last;
    }
    if desk.common.json {
        output::line(json!({
            "shape": shape,
            "brought_back": brought_back,
            "dry_run": desk.common.dry_run,
        }))?;
    } else {
        let would = if desk.common.dry_run { "would be " } else { "" };
        output::line(format_args!(
            "{shape}: {} {would}brought back",
            counted(brought_back, "task")
        ))?;
    }
    if brought_back > 0 && !desk.common.dry_run {
        desk.say_what_is_next().await?;
    }
    Ok(Exit::Finished)
}
