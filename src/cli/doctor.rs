//! `pgcrawl doctor`: looks at what a crawl needs, and says what is missing.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use rustix::process::{Resource, getrlimit};

use super::database::{self, DatabaseArgs, Missing, Opened, hinted};
use super::{Context, Exit, output};
use crate::config::FlagValue;
use crate::db::{Access, Part, query_text};
use crate::fetch::Resolver;

/// Under so much free room a crawl is soon in trouble.
const LOW_ROOM_BYTES: u64 = 2 << 30;

/// Name of the crawl that is only tried.
const TRIAL: &str = "doctor";

/// Longest that one look may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Name that is looked up
    ///
    /// The look-up asks the system. Default example.org.
    #[arg(
        long,
        value_name = "HOST",
        default_value = "example.org",
        hide_default_value = true
    )]
    name: String,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// What a look came to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// It is as it should be.
    Good(String),
    /// It works, but not for long or not well.
    Doubtful(String, &'static str),
    /// It does not work.
    Bad(String, String),
}

impl DoctorArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        self.database.flags()
    }

    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut bad = false;
        let mut tell = |what: &str, finding: Finding| {
            bad |= matches!(finding, Finding::Bad(..));
            output::print(line(what, &finding))
        };
        // A crawl that nobody named is tried on a database that is made for it and dropped again.
        let own = self.database.crawl.is_none() && context.loaded.config.database.url.is_none();
        let mut database = self.database.clone();
        if own {
            database.crawl = Some(TRIAL.to_owned());
        }
        match database::open(&database, context, Missing::Create).await {
            Ok(opened) => {
                let server = server(&opened).await;
                let answers = !matches!(server, Finding::Bad(..));
                tell("database", server)?;
                tell("clock", clock(&opened).await)?;
                if answers {
                    tell("vacuum", vacuum(&opened).await)?;
                }
                if let Some(server) = opened.server() {
                    tell("disk", disk(server.data_dir()))?;
                    if own {
                        server.drop_database(TRIAL).await.map_err(hinted)?;
                    }
                }
                opened.close().await?;
            }
            Err(error) => tell(
                "database",
                Finding::Bad(format!("{error:#}"), "see `pgcrawl db --help`".into()),
            )?,
        }
        tell(
            "names",
            names(&self.name, &context.loaded.config.fetch.resolver).await,
        )?;
        tell(
            "limits",
            limits(context.loaded.config.politeness.concurrency),
        )?;
        tell("identity", identity(context))?;
        Ok(if bad { Exit::Error } else { Exit::Finished })
    }
}

/// Connects as a crawl does, migrations included.
async fn server(opened: &Opened) -> Finding {
    let pool = match opened.pool().await {
        Ok(pool) => pool,
        Err(error) => {
            return Finding::Bad(
                format!("{error:#}"),
                "the crawl's role must own its database".into(),
            );
        }
    };
    crate::db::close(pool).await;
    let began = Instant::now();
    let question = "select current_setting('server_version'), current_setting('fsync'), current_setting('jit')";
    match ask(opened, question).await {
        Err(error) => Finding::Bad(error, "see the server's log".into()),
        Ok(row) if row.get(1).is_some_and(|fsync| fsync == "off") => Finding::Doubtful(
            "fsync is off".into(),
            "a crash of the machine can destroy the whole database",
        ),
        Ok(row) => Finding::Good(format!(
            "PostgreSQL {}, connected and asked in {} ms",
            row[0],
            began.elapsed().as_millis()
        )),
    }
}

/// The database's clock decides everything; ours is looked at because both are seldom right when they differ.
async fn clock(opened: &Opened) -> Finding {
    let row = match ask(opened, "select extract(epoch from clock_timestamp())").await {
        Ok(row) => row,
        Err(error) => return Finding::Bad(error, "see the server's log".into()),
    };
    let theirs = row
        .first()
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or_default();
    let ours = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let apart = (theirs - ours).abs();
    match apart {
        0.0..5.0 => Finding::Good("this machine's and the database's agree".into()),
        _ => Finding::Doubtful(
            format!("this machine's and the database's are {apart:.0} s apart"),
            "only the database's counts; slew it, do not set it",
        ),
    }
}

/// Whether dead rows are removed, and what keeps them if not.
async fn vacuum(opened: &Opened) -> Finding {
    let question = "select vacuum_behind, dead_tasks, dead_hosts, oldest_snapshot_kind, oldest_snapshot_pid, oldest_snapshot_name, \
                    date_trunc('second', oldest_snapshot_age), coalesce(oldest_snapshot_age > interval '5 minutes', oldest_snapshot_xids is not null) \
                    from queue_health";
    match ask(opened, question).await {
        Err(error) => Finding::Bad(error, "see the server's log".into()),
        Ok(row) => gets_through(&row),
    }
}

fn gets_through(row: &[String]) -> Finding {
    let [behind, tasks, hosts, kind, pid, name, age, is_old] = row else {
        return Finding::Bad(
            "queue_health is empty".into(),
            "see the server's log".into(),
        );
    };
    let dead = format!("{tasks} dead rows in tasks, {hosts} in hosts");
    let pid = if pid.is_empty() {
        String::new()
    } else {
        format!(" {pid}")
    };
    let age = if age.is_empty() {
        String::new()
    } else {
        format!(", {age} old,")
    };
    match (behind.as_str(), is_old.as_str()) {
        ("t", "t") => Finding::Doubtful(
            format!("it falls behind: {dead}; the {kind}{pid} ({name:?}){age} holds it back"),
            "end that, if it is forgotten; `select * from snapshots` shows them all",
        ),
        ("t", _) => Finding::Doubtful(
            format!("it falls behind: {dead}"),
            "give autovacuum more to spend: autovacuum_vacuum_cost_limit, autovacuum_naptime",
        ),
        (_, "t") => Finding::Doubtful(
            format!("the {kind}{pid} ({name:?}){age} will hold it back"),
            "end that, if it is forgotten; `select * from snapshots` shows them all",
        ),
        _ => Finding::Good(dead),
    }
}

fn disk(folder: &Path) -> Finding {
    match rustix::fs::statvfs(folder) {
        Err(error) => Finding::Bad(
            format!("{}: {error}", folder.display()),
            "it must be readable".into(),
        ),
        Ok(disk) => {
            let (free, all) = (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
            let shown = format!(
                "{} free of {} at {}",
                size(free),
                size(all),
                folder.display()
            );
            match free < LOW_ROOM_BYTES || free < all / 20 {
                true => Finding::Doubtful(
                    shown,
                    "10 million URLs take about 2.5 GB, a visited page 2 to 3 KB",
                ),
                false => Finding::Good(shown),
            }
        }
    }
}

async fn names(name: &str, resolver: &Resolver) -> Finding {
    let nameservers = std::fs::read_to_string("/etc/resolv.conf").is_ok_and(|text| {
        text.lines()
            .any(|line| line.trim_start().starts_with("nameserver"))
    });
    if *resolver == Resolver::Hickory && !nameservers {
        let hint = "the system's resolver is used instead; fetch.resolver can name a nameserver";
        return Finding::Doubtful("resolv.conf names no nameserver".into(), hint);
    }
    let began = Instant::now();
    match tokio::time::timeout(TIMEOUT, has_address(name)).await {
        Ok(Ok(true)) => Finding::Good(format!(
            "{name} found in {} ms",
            began.elapsed().as_millis()
        )),
        Ok(Ok(false)) => Finding::Doubtful(
            format!("{name} has no address"),
            "try another one with --name",
        ),
        Ok(Err(error)) => Finding::Doubtful(
            format!("{name}: {error}"),
            "through a socks5h proxy none are needed here",
        ),
        Err(_) => Finding::Doubtful(
            format!("{name}: no answer within {} s", TIMEOUT.as_secs()),
            "look at the nameserver",
        ),
    }
}

async fn has_address(name: &str) -> std::io::Result<bool> {
    Ok(tokio::net::lookup_host((name, 443)).await?.next().is_some())
}

/// Two descriptors a request, for a proxy's sake, and some for everything else.
fn limits(concurrency: usize) -> Finding {
    let needed = 2 * concurrency as u64 + 100;
    match getrlimit(Resource::Nofile).current {
        Some(files) if files < needed => Finding::Doubtful(
            format!("{files} open files, and {concurrency} requests in flight may need {needed}"),
            "raise `ulimit -n` or lower politeness.concurrency",
        ),
        Some(files) => Finding::Good(format!("{files} open files")),
        None => Finding::Good("any number of open files".into()),
    }
}

fn identity(context: &Context) -> Finding {
    let identity = &context.loaded.config.identity;
    match identity.is_reachable() {
        true => Finding::Good(identity.user_agent()),
        false => Finding::Doubtful(
            format!("{}, without a contact", identity.user_agent()),
            "set identity.contact, so that people can write before they block",
        ),
    }
}

/// Asks for one row.
async fn ask(opened: &Opened, question: &str) -> Result<Vec<String>, String> {
    let mut answer = Vec::new();
    let mut receive = |part: Part<'_>| {
        if let Part::Row(row) = part {
            answer = row
                .iter()
                .map(|value| value.unwrap_or_default().to_owned())
                .collect();
        }
        Ok(())
    };
    let asked = query_text(
        &opened.reader_url,
        Access::Read,
        question,
        TIMEOUT,
        &mut receive,
    )
    .await;
    asked.map(|()| answer).map_err(|error| error.to_string())
}

fn size(bytes: u64) -> String {
    bytesize::ByteSize(bytes).display().iec().to_string()
}

fn line(what: &str, finding: &Finding) -> String {
    match finding {
        Finding::Good(text) => format!("ok    {what:<10}{text}\n"),
        Finding::Doubtful(text, hint) => format!("warn  {what:<10}{text}\n{:16}{hint}\n", ""),
        Finding::Bad(text, hint) => format!("bad   {what:<10}{text}\n{:16}{hint}\n", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_doubted() {
        assert!(matches!(limits(1_000_000_000), Finding::Doubtful(..)));
        assert!(matches!(limits(1), Finding::Good(_)));
    }

    #[test]
    fn what_holds_vacuum_back_is_named() {
        let health = |behind: &str, age: &str, is_old: &str| {
            let row = [
                behind, "200000", "3", "session", "4711", "a report", age, is_old,
            ];
            gets_through(&row.map(str::to_owned))
        };
        assert!(matches!(health("f", "00:00:01", "f"), Finding::Good(_)));
        let Finding::Doubtful(words, _) = health("t", "01:00:00", "t") else {
            panic!("it falls behind");
        };
        assert_eq!(
            words,
            "it falls behind: 200000 dead rows in tasks, 3 in hosts; the session 4711 (\"a report\"), 01:00:00 old, holds it back"
        );
        assert!(matches!(
            health("t", "00:00:01", "f"),
            Finding::Doubtful(..)
        ));
        assert!(matches!(
            health("f", "01:00:00", "t"),
            Finding::Doubtful(..)
        ));
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_found_and_nonsense_is_doubted() {
        assert!(matches!(
            names("localhost", &Resolver::System).await,
            Finding::Good(_)
        ));
        assert!(matches!(
            names("", &Resolver::System).await,
            Finding::Doubtful(..)
        ));
    }
}
