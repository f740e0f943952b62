//! Section f: what the sources dispute or assert, each tried in a scripted accident.
//!
//! Two sessions and a third that watches. Where one must wait for the other, the third sees it wait before the script goes on: nothing here
//! depends on who is quicker.

mod isolation;
mod order;
mod poison;
mod recheck;

use std::time::Duration;

use super::report::{Cell, SectionReport, Table};
use super::session::{Answer, Session};
use super::{Lab, Result, Section, jobs};

/// Settings of section f.
#[derive(Clone, Debug, PartialEq)]
pub struct SemanticsSettings {
    /// Workers where some compete. Default 4.
    pub workers: usize,
    /// Tasks that they compete for. Default 400.
    pub tasks: u64,
    /// Tasks that a worker asks for at once. Default 10.
    pub batch: u32,
    /// Between a worker's SELECT and its UPDATE, in a statement each. Default 2 ms.
    pub thought: Duration,
    /// Tasks in the queue with the poison page at its head. Default 40.
    pub poisoned: u32,
    /// Workers that a queue without a limit of attempts is given to die. Default 10.
    pub lives: u32,
}

impl Default for SemanticsSettings {
    fn default() -> SemanticsSettings {
        SemanticsSettings {
            workers: 4,
            tasks: 400,
            batch: 10,
            thought: Duration::from_millis(2),
            poisoned: 40,
            lives: 10,
        }
    }
}

/// Something that is said, and what came of it.
struct Trial {
    /// What is said or asked.
    said: &'static str,
    /// What was done.
    tried: String,
    /// What came back.
    answer: String,
    /// Whether it is so, here.
    holds: bool,
    /// The same in a sentence.
    finding: String,
}

pub(super) async fn run(lab: &Lab) -> Result<SectionReport> {
    let mut report = SectionReport::new(
        Section::F,
        "What is disputed",
        "one or two raw tables; ours against poison: the schema of a crawl",
    );
    let mut trials = recheck::trials(lab).await?;
    trials.extend(order::trials(lab).await?);
    trials.extend(isolation::trials(lab).await?);
    let mut table = Table::new(
        "Two sessions, step by step",
        &[
            ("said", "said"),
            ("tried", "tried"),
            ("answer", "answer"),
            ("holds", "so"),
        ],
    );
    for trial in &trials {
        table.row([
            Cell::text(trial.said),
            Cell::text(trial.tried.clone()),
            Cell::text(trial.answer.clone()),
            Cell::Is(trial.holds),
        ]);
    }
    table.note("where a session waits for the other one's commit, a third has seen it wait in pg_stat_activity.");
    report.tables.push(table);
    for trial in trials {
        report.observe(trial.finding);
    }
    poison::run(lab, &mut report).await?;
    Ok(report)
}

/// Two sessions that play, and one that watches.
struct Scene {
    one: Session,
    two: Session,
    watch: Session,
}

impl Scene {
    async fn new(lab: &Lab, jobs: u64) -> Result<Scene> {
        let mut scene = Scene {
            one: lab.session().await?,
            two: lab.session().await?,
            watch: lab.session().await?,
        };
        jobs::make(&mut scene.watch, jobs).await?;
        Ok(scene)
    }

    /// `one` does something without a commit, `two` asks and is seen to wait, `one` commits. Answers what `two` got.
    async fn meanwhile(self, change: &str, question: &str) -> Result<(Scene, Answer)> {
        let Scene {
            mut one,
            two,
            mut watch,
        } = self;
        one.run(format!("begin; {change}")).await?;
        let pid = two.pid;
        let asking = two.begin_asking(question);
        watch.until_waiting(pid).await?;
        one.run("commit").await?;
        let (two, answer, _) = asking.end().await?;
        Ok((Scene { one, two, watch }, answer))
    }

    async fn end(mut self) -> Result {
        jobs::drop(&mut self.watch).await?;
        for session in [self.one, self.two, self.watch] {
            session.close().await;
        }
        Ok(())
    }
}
