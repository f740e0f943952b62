//! What pages of one shape of URLs brought: read since the last time, folded in once, by whoever comes first.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    Frontier, HostId, Result, ms,
    tries::{once, run},
};
use crate::frontier::TaskId;

/// Shapes of a host that are remembered. Forgotten are first those that are neither parked nor kept by an operator and have fewer than 5 pages, then
/// those with more, last those that are decided on; of equals the one that was not seen for the longest time.
const SHAPES_PER_HOST: i32 = 500;

/// A page that is to be folded in.
#[derive(Clone, Debug)]
pub struct ShapePage {
    /// Its task.
    pub task: TaskId,
    /// When it was fetched.
    pub fetched_at: DateTime<Utc>,
    /// Its host.
    pub host: HostId,
    /// Its URL.
    pub url: String,
    /// SHA-256 of its payload, where it is the first visit and brought a page.
    pub digest: Option<Vec<u8>>,
    /// Where the watermark was when it was read.
    pub mark: (DateTime<Utc>, i64),
}

/// A shape as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredShape {
    /// Its host.
    pub host: HostId,
    /// The shape.
    pub shape: String,
    /// The first 32 bits of the digests of its last pages, the youngest last.
    pub recent: Vec<i32>,
    /// Its URLs are left out.
    pub is_parked: bool,
    /// An operator wants it visited whatever its pages bring.
    pub is_kept: bool,
}

impl StoredShape {
    /// Nothing is to be judged.
    pub fn is_decided(&self) -> bool {
        self.is_parked || self.is_kept
    }
}

/// What is new of a shape.
#[derive(Clone, Debug)]
pub struct ShapeNews {
    /// Its host.
    pub host: HostId,
    /// The shape.
    pub shape: String,
    /// Further pages.
    pub pages: u32,
    /// The first 32 bits of the digests of its last pages, the youngest last.
    pub recent: Vec<i32>,
    /// A URL of it.
    pub example: String,
    /// It brings nothing new: its URLs are to be left out.
    pub parks: bool,
}

/// What was read since the last time, and where the watermark was and goes.
#[derive(Clone, Debug)]
pub struct Fold {
    /// Where it was.
    pub from: (DateTime<Utc>, i64),
    /// Where it goes.
    pub to: (DateTime<Utc>, i64),
    /// What is new.
    pub news: Vec<ShapeNews>,
}

impl Frontier {
    /// Pages that are not folded in yet, `most` at most, those of the last moments left out.
    pub async fn shape_pages(&self, most: u32, lag: Duration) -> Result<Vec<ShapePage>> {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let rows = run!(self, "shape_pages", async |db| {
            sqlx::query_file!("src/frontier/sql/shape_pages.sql", most, ms(lag))
                .fetch_all(db)
                .await
        })?;
        let rows = rows.into_iter().map(|row| ShapePage {
            task: TaskId(row.task_id),
            fetched_at: row.fetched_at,
            host: HostId(row.host_id),
            url: row.url,
            digest: row.digest,
            mark: (row.mark_at, row.mark_task),
        });
        Ok(rows.collect())
    }

    /// What is known of these shapes; those that are not known are left out.
    pub async fn shapes_of(&self, shapes: &[(HostId, &str)]) -> Result<Vec<StoredShape>> {
        let hosts: Vec<i32> = shapes.iter().map(|(host, _)| host.0).collect();
        let texts: Vec<String> = shapes.iter().map(|(_, text)| (*text).to_owned()).collect();
        let (hosts, texts) = (&hosts, &texts);
        let rows = run!(self, "shapes_of", async |db| {
            sqlx::query_file!("src/frontier/sql/shapes_of.sql", hosts, texts)
                .fetch_all(db)
                .await
        })?;
        let rows = rows.into_iter().map(|row| StoredShape {
            host: HostId(row.host_id),
            shape: row.shape,
            recent: row.recent,
            is_parked: row.is_parked,
            is_kept: row.is_kept,
        });
        Ok(rows.collect())
    }

    /// Folds pages in. False: another process did meanwhile, and nothing was written.
    pub async fn fold_shapes(&self, fold: &Fold) -> Result<bool> {
        let news = &fold.news;
        let hosts: Vec<i32> = news.iter().map(|one| one.host.0).collect();
        let shapes: Vec<String> = news.iter().map(|one| one.shape.clone()).collect();
        let pages: Vec<i32> = news
            .iter()
            .map(|one| i32::try_from(one.pages).unwrap_or(i32::MAX))
            .collect();
        let recent: Vec<i32> = news.iter().flat_map(|one| one.recent.clone()).collect();
        let own: Vec<i32> = news
            .iter()
            .map(|one| i32::try_from(one.recent.len()).unwrap_or(i32::MAX))
            .collect();
        let examples: Vec<String> = news.iter().map(|one| one.example.clone()).collect();
        let parks: Vec<bool> = news.iter().map(|one| one.parks).collect();
        let (hosts, shapes, pages, recent) = (&hosts, &shapes, &pages, &recent);
        let (own, examples, parks) = (&own, &examples, &parks);
        run!(self, "fold_shapes", async |db| {
            sqlx::query_file_scalar!(
                "src/frontier/sql/fold_shapes.sql",
                fold.from.0,
                fold.from.1,
                fold.to.0,
                fold.to.1,
                hosts,
                shapes,
                pages,
                recent,
                own,
                examples,
                parks,
                SHAPES_PER_HOST
            )
            .fetch_one(db)
            .await
        })
    }

    /// The shapes that are parked, 100,000 at most: host, its key, shape.
    pub async fn parked_shapes(&self) -> Result<Vec<(HostId, String, String)>> {
        let rows = run!(self, "parked_shapes", async |db| {
            sqlx::query_file!("src/frontier/sql/parked_shapes.sql")
                .fetch_all(db)
                .await
        })?;
        let rows = rows.into_iter();
        Ok(rows
            .map(|row| (HostId(row.host_id), row.authority, row.shape))
            .collect())
    }
}
