//! Pool of thumbnail work: bounds its concurrency and memory. Permits go with the work, not the caller.

use std::sync::Arc;

use blackboard_thumbnail::{Bounds, Probe, Undecodable};
use tokio::sync::Semaphore;

use crate::ServiceError;
use crate::work_turns::TURN_WAIT_MAX;
use blackboard_fairness::{Place, Share, SharedPlaces};
use blackboard_store::StoreError;

/// The number of images read and decoded at once.
pub const THUMBNAILS_AT_ONCE_MAX: u64 = 2;

/// The bytes of memory that they may need together. An image that needs more is decoded alone.
pub const THUMBNAIL_MEMORY_MAX: u64 = 64 << 20;

/// The number of thumbnails that one client may wait for.
pub const THUMBNAILS_WAITING_MAX: u64 = 1024;

/// The unit in which memory is granted, in bytes.
const UNIT: u64 = 1 << 10;

pub(super) struct Pool {
    waiting: SharedPlaces,
    jobs: SharedPlaces,
    memory: Arc<Semaphore>,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            waiting: SharedPlaces::new(THUMBNAILS_WAITING_MAX, 0, Share::LeavesRest),
            jobs: SharedPlaces::new(THUMBNAILS_AT_ONCE_MAX, usize::MAX, Share::All),
            memory: Arc::new(Semaphore::new(units(THUMBNAIL_MEMORY_MAX) as usize)),
        }
    }
}

/// The result of an image's work, or the reason why its bytes could not be read or decoded.
type Made<T> = Result<Result<T, Undecodable>, StoreError>;

impl Pool {
    /// Takes a place in the queue.
    pub(super) fn wait(&self) -> Result<Place, ServiceError> {
        self.waiting.now(1).ok_or(ServiceError::Overloaded)
    }

    /// Decodes the bytes that `read` returns, once memory is free, and returns what `work` makes of them.
    pub(super) async fn make<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<Vec<u8>, StoreError> + Send + 'static,
        bounds: Bounds,
        work: impl FnOnce(&[u8], Probe) -> Result<T, Undecodable> + Send + 'static,
    ) -> Result<Made<T>, ServiceError> {
        let job = self.jobs.wait(1, TURN_WAIT_MAX).await;
        let job = job.map_err(|_| ServiceError::Overloaded)?;
        let reading = tokio::task::spawn_blocking(move || {
            let probe = |bytes: Vec<u8>| {
                blackboard_thumbnail::probe(&bytes, bounds).map(|probe| (probe, bytes))
            };
            let probed = read().map(probe);
            (probed, job)
        });
        let (probed, job) = reading.await.map_err(|_| ServiceError::Fault)?;
        let (probe, bytes) = match probed {
            Ok(Ok(probed)) => probed,
            Ok(Err(undecodable)) => return Ok(Ok(Err(undecodable))),
            Err(error) => return Ok(Err(error)),
        };
        // A holder of memory waits for nothing more, so no two wait for each other.
        let units = units(probe.need.min(THUMBNAIL_MEMORY_MAX));
        let memory = Arc::clone(&self.memory).acquire_many_owned(units).await;
        let memory = memory.map_err(|_| ServiceError::Stopping)?;
        let making = tokio::task::spawn_blocking(move || {
            let made = work(&bytes, probe);
            drop((bytes, memory, job));
            made
        });
        Ok(Ok(making.await.map_err(|_| ServiceError::Fault)?))
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}
