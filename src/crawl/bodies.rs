//! Room in memory for large bodies: a hundred of them at once take turns instead of all of it.
//!
//! A body that turns out to be large asks for all the room that it may need in one go, so nobody who has some waits for more; it is had until
//! the visit has read the page, and from then on the finished visit has its own (`commit`). Small bodies are not counted.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fetch::BodyRoom;

/// Payload of large bodies that are fetched and read at once, at most: six of the default cap. In memory a body may stand three times, as
/// sent, undone and as text.
const ROOM_KIB: u32 = 64 << 10;

/// The room of one process.
pub(super) struct LargeBodies(Arc<Semaphore>);

impl Default for LargeBodies {
    fn default() -> LargeBodies {
        LargeBodies(Arc::new(Semaphore::new(ROOM_KIB as usize)))
    }
}

impl LargeBodies {
    /// Room for the bodies of one visit, one after the other; it is given back when the guard and the answer are dropped.
    pub(super) fn room(&self) -> (BodyRoom, BodyGuard) {
        let guard = BodyGuard::default();
        let (all, kept) = (Arc::clone(&self.0), guard.clone());
        let room = BodyRoom::new(move |bytes| {
            let (all, kept) = (Arc::clone(&all), kept.clone());
            async move {
                // What an earlier hop was given is not needed any more, and must not be held while waiting.
                kept.put(None);
                // One that is larger than all of it alone takes all of it.
                let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
                kept.put(all.acquire_many_owned(kib.min(ROOM_KIB)).await.ok());
            }
        });
        (room, guard)
    }
}

/// Holds the room of one visit.
#[derive(Clone, Default)]
pub(super) struct BodyGuard(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl BodyGuard {
    fn put(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn large_bodies_wait_for_each_other_until_one_is_read() {
        let bodies = LargeBodies::default();
        let visits: Vec<_> = (0..3).map(|_| bodies.room()).collect();
        assert!(visits[0].0.wait(40 * MIB).now_or_never().is_some());
        let (second, third) = (visits[1].0.clone(), visits[2].0.clone());
        let mut waiting = Box::pin(second.wait(40 * MIB));
        assert!((&mut waiting).now_or_never().is_none());
        // First come, first served: a smaller one does not pass.
        assert!(third.wait(20 * MIB).now_or_never().is_none());
        drop(visits);
        assert!((&mut waiting).now_or_never().is_some());
        assert!(third.wait(20 * MIB).now_or_never().is_some());
    }

    #[test]
    fn a_visit_s_second_body_takes_the_room_of_its_first_and_one_too_large_takes_all() {
        let bodies = LargeBodies::default();
        let (room, _guard) = bodies.room();
        for bytes in [40 * MIB, 40 * MIB, usize::MAX, 100] {
            assert!(room.wait(bytes).now_or_never().is_some(), "{bytes}");
        }
        let (other, _guard) = bodies.room();
        assert!(other.wait(60 * MIB).now_or_never().is_some());
    }
}
