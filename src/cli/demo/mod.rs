//! `pgcrawl demo`: the very same crawl as `crawl`, of a small site that this process serves on loopback.
//!
//! The site knows what a crawler owes each of its resources and counts its requests, so the demo can say whether the
//! crawl was right, and not only that it ended.

use clap::Args;

use super::{Context, Exit, output};
use crate::config::FlagValue;

mod prose;
mod serve;
mod site;
mod verdict;

use serve::Server;

/// Flags of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Only serve the site, until Ctrl-C
    ///
    /// On the ports of seeds/demo.txt, for `pgcrawl crawl seeds/demo.txt` or any other crawler; then say whether what was
    /// asked for is what should have been.
    #[arg(long)]
    serve: bool,
}

impl DemoArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        Vec::new()
    }

    pub(super) async fn run(self, _context: &Context) -> anyhow::Result<Exit> {
        let server = Server::start().await?;
        output::say(format_args!("serving {}", verdict::inventory(&server.site)));
        for base in &server.bases {
            output::say(format_args!("  {base}/"));
        }
        tokio::signal::ctrl_c().await?;
        judge(&server)
    }
}

/// Prints whether the site was asked for exactly what it should have been.
fn judge(server: &Server) -> anyhow::Result<Exit> {
    let faults = verdict::faults(&server.site, &server.bases, &server.requests());
    if faults.is_empty() {
        output::line(
            "Each page was asked for once, and nothing that should have been left alone.",
        )?;
        return Ok(Exit::Finished);
    }
    output::line(format_args!(
        "{} URLs were asked for too often or too seldom:",
        faults.len()
    ))?;
    for fault in faults.iter().take(10) {
        output::line(format_args!(
            "  {} (asked for {} times, not {})",
            fault.url, fault.asked, fault.owed
        ))?;
    }
    Ok(Exit::Error)
}
