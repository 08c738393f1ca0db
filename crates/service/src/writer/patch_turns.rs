//! Turns of patches that lost a race for their entry.
//!
//! With nothing but retries the winner of each commit is random, and one of many patchers may lose all its tries.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::timeout;

use crate::ServiceError;
use crate::work_turns::TURN_WAIT_MAX;
use blackboard_board::{LogName, Seq, SessionName};
use blackboard_fairness::{Place, Share, SharedPlaces};

/// The maximum number of patches of one entry that wait for their turn.
const WAITING_MAX: usize = 1024;

/// The name of an entry.
pub(super) type EntryName = (SessionName, LogName, Seq);

/// The turns of the entries for which patches race. Others are not in the map.
#[derive(Debug, Default)]
pub(crate) struct PatchTurns(Arc<Mutex<HashMap<EntryName, SharedPlaces>>>);

/// A turn, passed to the next patch of the entry when dropped.
pub(super) struct PatchTurn {
    turns: PatchTurns,
    entry: EntryName,
    place: Option<Place>,
}

impl PatchTurns {
    /// Waits until the entry's other patches that lost a race before are done.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Overloaded`] if too many wait, or for too long.
    pub(super) async fn wait(&self, entry: EntryName) -> Result<PatchTurn, ServiceError> {
        // Made before the wait: dropped with it, it leaves no entry behind.
        let mut turn = PatchTurn { turns: Self(Arc::clone(&self.0)), entry, place: None };
        let granted = {
            let mut turns = self.0.lock();
            let new = || SharedPlaces::new(1, WAITING_MAX, Share::All);
            turns.entry(turn.entry.clone()).or_insert_with(new).turn(1)
        };
        let place = timeout(TURN_WAIT_MAX, granted.map_err(|_| ServiceError::Overloaded)?).await;
        turn.place = place.ok().and_then(Result::ok);
        if turn.place.is_none() {
            return Err(ServiceError::Overloaded);
        }
        Ok(turn)
    }

    /// The number of entries for which patches wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl Drop for PatchTurn {
    fn drop(&mut self) {
        drop(self.place.take());
        let mut turns = self.turns.0.lock();
        // A dropped place goes to the next that waits, hence an entry without a used place has none that waits.
        if turns.get(&self.entry).is_some_and(|places| places.used() == 0) {
            turns.remove(&self.entry);
        }
    }
}
