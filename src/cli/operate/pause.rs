//! `pause` and `resume`.

use clap::Args;
use serde_json::json;

use super::{Common, Desk, hinted};
use crate::cli::{Exit, output};
use crate::frontier::operate::Paused;

/// Flags of `pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    #[command(flatten)]
    pub(super) common: Common,
}

/// Flags of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub(super) common: Common,
}

impl PauseArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        let dry_run = desk.common.dry_run;
        let before = match dry_run {
            true => desk.operator.paused().await,
            false => desk.operator.pause().await,
        };
        let before = before.map_err(hinted)?;
        let words = match (before, dry_run) {
            (Paused::Since(at), _) => format!(
                "the crawl is paused already, since {}",
                at.format("%Y-%m-%d %H:%M:%S UTC")
            ),
            (Paused::No, true) => "the crawl would be paused".to_owned(),
            (Paused::No, false) => "the crawl is paused".to_owned(),
        };
        tell(desk, before == Paused::No, &words)?;
        if !dry_run {
            let crawl = desk.crawl();
            desk.say(format_args!(
                "what is in flight is finished; `pgcrawl resume{crawl}` goes on"
            ));
        }
        Ok(Exit::Finished)
    }
}

impl ResumeArgs {
    pub(super) async fn run(self, desk: &Desk) -> anyhow::Result<Exit> {
        let dry_run = desk.common.dry_run;
        let before = match dry_run {
            true => desk.operator.paused().await,
            false => desk.operator.resume().await,
        };
        let before = before.map_err(hinted)?;
        let words = match (before, dry_run) {
            (Paused::No, _) => "the crawl is not paused".to_owned(),
            (Paused::Since(_), true) => "the crawl would go on".to_owned(),
            (Paused::Since(at), false) => {
                format!(
                    "the crawl goes on; it was paused since {}",
                    at.format("%Y-%m-%d %H:%M:%S UTC")
                )
            }
        };
        tell(desk, before != Paused::No, &words)?;
        Ok(Exit::Finished)
    }
}

fn tell(desk: &Desk, changed: bool, words: &str) -> anyhow::Result<()> {
    match desk.common.json {
        true => output::line(json!({ "changed": changed, "dry_run": desk.common.dry_run }))?,
        false => output::line(words)?,
    }
    Ok(())
}
