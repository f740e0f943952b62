//! Block lists: files that this process reads again when they change, and their entries in the database, which all processes keep to.
//!
//! Whoever has a file tells the database what came and what went, and decides against the new tasks that an entry covers. Everybody learns the
//! entries, and asks them of each link that is found and of each task before its first request.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use crate::{
    canon::{HostKey, PageUrl},
    frontier::{BlockChange, Frontier, FrontierError, HostId, TaskId},
    scope::block::{self, Blocks},
};

/// How often files are looked at, and changes of others asked for: an index probe.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Entries that one statement tells.
const BATCH: usize = 5_000;

/// Longest line that is read, in bytes; what is longer is no entry.
const LINE_BYTES: u64 = 16 * 1024;

/// Bad lines of a file that are told one by one.
const TOLD: usize = 20;

/// The entries as this process knows them.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    blocks: RwLock<Blocks>,
    last: AtomicI64,
}

impl Blocked {
    /// The entry that covers a URL.
    pub(super) fn covering(&self, url: &PageUrl) -> Option<String> {
        self.read(|blocks| blocks.covering(url))
    }

    /// The entry that covers all of a host.
    pub(super) fn covering_host(&self, host: &HostKey) -> Option<String> {
        self.read(|blocks| blocks.covering_host(host))
    }

    /// Learns what changed in the database since the last time.
    pub(super) async fn refresh(&self, frontier: &Frontier) -> Result<(), FrontierError> {
        loop {
            let changes = frontier
                .blocks_after(self.last.load(Ordering::Acquire))
                .await?;
            let Some(last) = changes.last().map(|change| change.change) else {
                return Ok(());
            };
            self.learn(&changes);
            self.last.fetch_max(last, Ordering::AcqRel);
        }
    }

    fn learn(&self, changes: &[BlockChange]) {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            match change.counts {
                true => blocks.insert(&change.entry),
                false => blocks.remove(&change.entry),
            }
        }
    }

    fn read<T>(&self, look: impl FnOnce(&Blocks) -> T) -> T {
        look(&self.blocks.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps to the lists until told to stop.
pub(super) async fn run(
    cx: Arc<Context>,
    mut lists: Vec<List>,
    stop: CancellationToken,
) -> Result<(), FrontierError> {
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        // What was begun may be cut off: the next look begins it anew.
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            looked = look(&cx, &mut lists) => looked?,
        }
    }
}

/// Takes over what changed: in the files first, so that this process knows its own at once.
pub(super) async fn look(cx: &Context, lists: &mut [List]) -> Result<(), FrontierError> {
    let mut came = false;
    for list in lists {
        came |= list.look(&cx.frontier).await?;
    }
    cx.blocked.refresh(&cx.frontier).await?;
    if came {
        sweep(cx).await?;
    }
    Ok(())
}

/// Decides against new tasks that an entry covers. What is claimed, or waits for a retry, is decided against when its turn comes.
async fn sweep(cx: &Context) -> Result<(), FrontierError> {
    let (mut host, mut excluded) = (HostId(0), 0);
    loop {
        let hosts = cx.frontier.hosts_with_new(host).await?;
        let Some((last, ..)) = hosts.last() else {
            break;
        };
        host = *last;
        for (id, authority, has_new) in hosts {
            let Some(key) = has_new.then(|| HostKey::parse(&authority).ok()).flatten() else {
                continue;
            };
            let whole = cx.blocked.covering_host(&key);
            if whole.is_some() || cx.blocked.read(|blocks| blocks.has_paths(&key)) {
                excluded += sweep_host(cx, id, whole.as_deref()).await?;
            }
        }
    }
    if excluded > 0 {
        tracing::info!("{excluded} new tasks are excluded: a block list covers them");
    }
    Ok(())
}

async fn sweep_host(cx: &Context, host: HostId, whole: Option<&str>) -> Result<u64, FrontierError> {
    let (mut task, mut excluded) = ((i16::MIN, TaskId(0)), 0);
    loop {
        let tasks = cx.frontier.new_tasks_of(host, task).await?;
        let Some((priority, last, _)) = tasks.last() else {
            return Ok(excluded);
        };
        task = (*priority, *last);
        let mut covered: Vec<(String, TaskId)> = tasks
            .into_iter()
            .filter_map(|(_, id, url)| {
                let entry = match whole {
                    Some(entry) => Some(entry.to_owned()),
                    None => cx.blocked.covering(&PageUrl::parse(&url).ok()?),
                };
                Some((entry?, id))
            })
            .collect();
        covered.sort_unstable_by(|a, b| (&a.0, a.1.0).cmp(&(&b.0, b.1.0)));
        for same in covered.chunk_by(|a, b| a.0 == b.0) {
            let ids: Vec<TaskId> = same.iter().map(|(_, id)| *id).collect();
            excluded += cx.frontier.exclude(&ids, "blocked", &same[0].0).await?;
        }
    }
}

/// A file, and what the database has of it.
#[derive(Debug)]
pub(super) struct List {
    path: PathBuf,
    name: String,
    /// Its number in the database, and hashes of the entries there; none before it was first read.
    known: Option<(i32, Known)>,
    /// As it was when it was last taken over.
    seen: Option<Stamp>,
    /// Whether it was told that it cannot be read.
    complained: bool,
}

/// Size and time of the last change.
type Stamp = (u64, Option<SystemTime>);

/// 16 bytes an entry: enough to tell what came and what went.
#[derive(Debug, Default)]
struct Known {
    hashers: (RandomState, RandomState),
    entries: HashSet<u128>,
}

impl Known {
    fn hash(hashers: &(RandomState, RandomState), entry: &str) -> u128 {
        u128::from(hashers.0.hash_one(entry)) << 64 | u128::from(hashers.1.hash_one(entry))
    }
}

/// What a file turned out to say, piece by piece.
enum Piece {
    /// Entries that the database does not have, with their lines.
    New(Vec<String>, Vec<i32>),
    /// All was read: hashes of its entries, and bad lines.
    End(HashSet<u128>, usize),
    /// It cannot be read.
    Failed(std::io::Error),
}

impl List {
    /// The list of a file on this machine.
    pub(super) fn new(path: &Path, host_name: &str) -> List {
        List {
            name: format!("{host_name}:{}", path.display()),
            path: path.to_owned(),
            known: None,
            seen: None,
            complained: false,
        }
    }

    /// Takes over what changed in the file, if it did. Answers whether entries may have come.
    async fn look(&mut self, frontier: &Frontier) -> Result<bool, FrontierError> {
        let stamp = match stamp(&self.path) {
            Ok(stamp) => stamp,
            Err(error) => {
                self.complain(&error);
                return Ok(false);
            }
        };
        if self.seen == Some(stamp) {
            return Ok(false);
        }
        let (list, known) = match self.known.take() {
            Some(known) => known,
            None => known_of(frontier, &self.name).await?,
        };
        let hashers = known.hashers.clone();
        let known = Arc::new(known);
        let (sender, mut pieces) = mpsc::channel(2);
        let path = self.path.clone();
        let before = Arc::clone(&known);
        let reading = tokio::task::spawn_blocking(move || read(&path, &before, &sender));
        let (mut end, mut came) = (None, false);
        while let Some(piece) = pieces.recv().await {
            match piece {
                Piece::New(entries, lines) => {
                    frontier.block(list, &entries, &lines).await?;
                    came = true;
                }
                Piece::End(entries, bad) => end = Some((entries, bad)),
                Piece::Failed(error) => self.complain(&error),
            }
        }
        let _ = reading.await;
        let Some((entries, bad)) = end else {
            // What the database has is as it was, or else it is asked again.
            let known = Arc::into_inner(known).filter(|_| !came);
            self.known = known.map(|known| (list, known));
            return Ok(came);
        };
        if self::stamp(&self.path).ok() != Some(stamp) {
            // It is being written: what it lacks now may be there in the end.
            return Ok(true);
        }
        let gone = known.entries.iter().any(|hash| !entries.contains(hash));
        if gone {
            forget(frontier, list, &hashers, &entries).await?;
        }
        let count = entries.len();
        tracing::info!(
            "block list {}: {count} entries{}",
            self.path.display(),
            match bad {
                0 => String::new(),
                bad => format!(", {bad} bad lines left out"),
            }
        );
        self.known = Some((list, Known { hashers, entries }));
        self.seen = Some(stamp);
        self.complained = false;
        Ok(true)
    }

    fn complain(&mut self, error: &std::io::Error) {
        if !self.complained {
            tracing::warn!(%error, "block list {} cannot be read; its entries go on to count", self.path.display());
            self.complained = true;
        }
    }
}

fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.len(), metadata.modified().ok()))
}

/// What the database has of a list.
async fn known_of(frontier: &Frontier, name: &str) -> Result<(i32, Known), FrontierError> {
    let list = frontier.block_list(name).await?;
    let mut known = Known::default();
    each_of(frontier, list, |entry| {
        known.entries.insert(Known::hash(&known.hashers, entry));
    })
    .await?;
    Ok((list, known))
}

/// Takes from the list what the file has no more.
async fn forget(
    frontier: &Frontier,
    list: i32,
    hashers: &(RandomState, RandomState),
    entries: &HashSet<u128>,
) -> Result<(), FrontierError> {
    let mut gone = Vec::new();
    each_of(frontier, list, |entry| {
        if !entries.contains(&Known::hash(hashers, entry)) {
            gone.push(entry.to_owned());
        }
    })
    .await?;
    for batch in gone.chunks(BATCH) {
        frontier.unblock(list, batch).await?;
    }
    Ok(())
}

/// Shows each entry that a list has.
async fn each_of(
    frontier: &Frontier,
    list: i32,
    mut show: impl FnMut(&str),
) -> Result<(), FrontierError> {
    let mut last = 0;
    loop {
        let changes = frontier.blocks_after(last).await?;
        let Some(change) = changes.last() else {
            return Ok(());
        };
        last = change.change;
        let own = changes.iter();
        own.filter(|change| change.list == list && change.is_listed)
            .for_each(|change| show(&change.entry));
    }
}

/// Reads a file, where blocking is allowed. Ends early when nobody listens any more.
fn read(path: &Path, known: &Known, pieces: &mpsc::Sender<Piece>) {
    let _ = match pieces_of(path, known, pieces) {
        Ok(Some((entries, bad))) => pieces.blocking_send(Piece::End(entries, bad)),
        Ok(None) => return,
        Err(error) => pieces.blocking_send(Piece::Failed(error)),
    };
}

fn pieces_of(
    path: &Path,
    known: &Known,
    pieces: &mpsc::Sender<Piece>,
) -> std::io::Result<Option<(HashSet<u128>, usize)>> {
    let mut file = BufReader::with_capacity(64 << 10, std::fs::File::open(path)?);
    let (mut all, mut bad, mut number) = (HashSet::new(), 0, 0_i32);
    let (mut entries, mut lines) = (Vec::new(), Vec::new());
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = file
            .by_ref()
            .take(LINE_BYTES)
            .read_until(b'\n', &mut bytes)?;
        if read == 0 {
            break;
        }
        number = number.saturating_add(1);
        let line = if read as u64 == LINE_BYTES && bytes.last() != Some(&b'\n') {
            file.skip_until(b'\n')?;
            Err(format!("longer than {LINE_BYTES} bytes"))
        } else {
            std::str::from_utf8(&bytes)
                .map_err(|_| "not UTF-8".to_owned())
                .and_then(block::entry)
        };
        match line {
            Ok(None) => {}
            Ok(Some(entry)) => {
                let hash = Known::hash(&known.hashers, &entry);
                if all.insert(hash) && !known.entries.contains(&hash) {
                    entries.push(entry);
                    lines.push(number);
                }
            }
            Err(message) => {
                bad += 1;
                if bad <= TOLD {
                    tracing::warn!("block list {}:{number}: {message}", path.display());
                }
            }
        }
        if entries.len() == BATCH {
            let piece = Piece::New(std::mem::take(&mut entries), std::mem::take(&mut lines));
            if pieces.blocking_send(piece).is_err() {
                return Ok(None);
            }
        }
    }
    if !entries.is_empty() && pieces.blocking_send(Piece::New(entries, lines)).is_err() {
        return Ok(None);
    }
    Ok(Some((all, bad)))
}
