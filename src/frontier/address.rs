//! The gate of addresses: where a crawl keeps a delay per address, over all hosts and machines.
//!
//! As a host is held, so is its address, from before a fetch to the delay after it: by one statement before and one after. A hold whose
//! worker died ends by itself.

use std::{net::IpAddr, time::Duration};

use super::{
    Frontier, Result, WorkerId, ms,
    tries::{once, run},
};
use crate::clock::Boottime;

/// Whether an address may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressLeave {
    /// It is held by this worker now.
    Held(AddressHold),
    /// Another has it, or had it just now.
    Busy {
        /// When it is free at the latest.
        free_in: Duration,
    },
}

/// The hold of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressHold {
    /// The address.
    pub ip: IpAddr,
    /// Fences the release.
    pub version: i32,
}

impl Frontier {
    /// Holds an address for a fetch of `longest` at most, if nobody holds it and `delay` is over since its last fetch.
    pub async fn hold_address(
        &self,
        worker: WorkerId,
        ip: IpAddr,
        longest: Duration,
        delay: Duration,
    ) -> Result<AddressLeave> {
        let (text, until) = (ip.to_string(), ms(longest + delay));
        let row = run!(self, "hold_address", async |db| {
            sqlx::query_file!("src/frontier/sql/hold_address.sql", text, worker.0, until)
                .fetch_one(db)
                .await
        })?;
        Ok(match row.hold_version {
            Some(version) => AddressLeave::Held(AddressHold { ip, version }),
            None => AddressLeave::Busy {
                free_in: Duration::from_millis(row.free_in_ms.unsigned_abs()),
            },
        })
    }

    /// Ends a hold: the address may be asked again `delay` after the fetch ended.
    pub async fn release_address(
        &self,
        worker: WorkerId,
        hold: AddressHold,
        ended: Boottime,
        delay: Duration,
    ) -> Result {
        let text = hold.ip.to_string();
        run!(self, "release_address", async |db| {
            // Each try anew; never below the delay.
            let rest = ms(delay.saturating_sub(ended.elapsed()));
            sqlx::query_file!(
                "src/frontier/sql/release_address.sql",
                text,
                worker.0,
                hold.version,
                rest
            )
            .execute(db)
            .await
            .map(|_| ())
        })
    }
}
