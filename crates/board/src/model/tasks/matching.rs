//! Requests with wanted members: those that can be claimed, and those in review.
//!
//! A later board is matched by its difference to the one before, so a commit costs what it changed.

use std::sync::Arc;

use imbl::ordmap::DiffItem;
use imbl::{OrdMap, OrdSet};

use super::caps::{Cap, Groups};
use super::traits::Traits;
use crate::{AgentName, Board, Entry, Revision, Seq, Wanted};

/// The requests of a board that have wanted members.
#[derive(Clone, Debug)]
pub struct Matching {
    wanted: Wanted,
    traits: Traits,
    caps: Arc<[Cap]>,
    /// The waiting requests of the board, matched or not, and those in review.
    seen: [OrdMap<Seq, Revision>; 2],
    /// The last changes of the requests and of the session's settings.
    at: [Revision; 2],
    /// The matched ones among those that wait for a worker.
    waiting: OrdMap<Seq, Waiting>,
    rooms: OrdMap<Groups, Room>,
    /// The matched ones among those in review, each with the agent that did it.
    reviews: OrdMap<Seq, Option<AgentName>>,
    /// The revision at which a request last became claimable.
    newest: Revision,
}

/// A matched request that waits for a worker.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    changed: Revision,
    groups: Groups,
}

/// The matched requests that caps count together.
#[derive(Clone, Debug, Default)]
struct Room {
    /// The requests by their last change.
    requests: OrdSet<(Revision, Seq)>,
    /// The revision since which no cap holds them back, unless one does. It may be later than the true one: then a
    /// request is found to be new once more.
    since: Option<Revision>,
}

impl Matching {
    /// Finds the requests of a board with these members.
    #[must_use]
    pub fn of(board: &Board, wanted: &Wanted) -> Self {
        let empty = Self {
            wanted: wanted.clone(),
            traits: Traits::wanted(wanted),
            caps: Arc::clone(&board.tasks.caps),
            seen: Default::default(),
            at: Default::default(),
            waiting: OrdMap::new(),
            rooms: OrdMap::new(),
            reviews: OrdMap::new(),
            newest: Revision::default(),
        };
        empty.updated(board)
    }

    /// Returns the requests of another board of the same session, which usually follows the present one.
    #[must_use]
    pub fn on(&self, board: &Board) -> Self {
        let [waiting, in_review] = &self.seen;
        let tasks = &board.tasks;
        let is_same = self.at == Self::changes(board)
            && waiting.ptr_eq(&tasks.claimable)
            && in_review.ptr_eq(&tasks.in_review);
        if is_same {
            // Most commits are about other things.
            self.clone()
        } else if self.caps == tasks.caps {
            self.updated(board)
        } else {
            Self::of(board, &self.wanted)
        }
    }

    /// Returns the number of requests, those that a cap holds back included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() + self.reviews.len()
    }

    /// Returns true if no request matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of requests that can be claimed now and became claimable after this revision.
    #[must_use]
    pub fn claimable_count(&self, after: Revision) -> usize {
        if self.newest <= after {
            return 0;
        }
        let open = self.rooms.values().filter_map(|room| Some((room.since?, room)));
        let counts = open.map(|(since, room)| {
            let is_new = since > after;
            if is_new { room.requests.len() } else { room.after(after).count() }
        });
        counts.sum()
    }

    /// Returns the newest requests that can be claimed now and became claimable after this revision, newest first.
    pub fn claimable(&self, after: Revision) -> impl Iterator<Item = Seq> {
        let came = move |waiting: &Waiting| {
            let since = self.rooms.get(&waiting.groups).and_then(|room| room.since);
            since.is_some_and(|since| since.max(waiting.changed) > after)
        };
        let waiting = self.waiting.iter().rev().filter(move |(_, waiting)| came(waiting));
        waiting.map(|(seq, _)| *seq)
    }

    /// Returns the revision at which a request last became claimable that still is.
    #[must_use]
    pub fn newest(&self) -> Revision {
        self.newest
    }

    /// Returns the requests in review that this agent did not do, newest first.
    pub fn reviews(&self, agent: &AgentName) -> impl Iterator<Item = Seq> {
        let others = self.reviews.iter().rev().filter(move |(_, by)| by.as_ref() != Some(agent));
        others.map(|(seq, _)| *seq)
    }

    fn changes(board: &Board) -> [Revision; 2] {
        let [_, requests, ..] = board.logs();
        let configured = board.life.as_ref().map(|life| life.configured).unwrap_or_default();
        [requests.changed(), configured]
    }

    fn updated(&self, board: &Board) -> Self {
        let mut matching = self.clone();
        let tasks = &board.tasks;
        let [waiting, in_review] = &self.seen;
        for change in waiting.diff(&tasks.claimable) {
            matching.follow_waiting(board, &change);
        }
        for change in in_review.diff(&tasks.in_review) {
            matching.follow_review(board, &change);
        }
        matching.seen = [tasks.claimable.clone(), tasks.in_review.clone()];
        matching.at = Self::changes(board);
        matching.find_rooms(board);
        matching
    }

    fn follow_waiting(&mut self, board: &Board, change: &DiffItem<'_, '_, Seq, Revision>) {
        let (DiffItem::Add(seq, _)
        | DiffItem::Remove(seq, _)
        | DiffItem::Update { new: (seq, _), .. }) = change;
        if let Some(Waiting { changed, groups }) = self.waiting.remove(*seq)
            && let Some(mut room) = self.rooms.remove(&groups)
        {
            room.requests.remove(&(changed, **seq));
            if !room.requests.is_empty() {
                self.rooms.insert(groups, room);
            }
        }
        let (DiffItem::Add(_, changed) | DiffItem::Update { new: (_, changed), .. }) = change
        else {
            return;
        };
        let Some(entry) = self.matched(board, **seq) else { return };
        let groups = board.tasks.groups(&entry.item);
        let mut room = self.rooms.get(&groups).cloned().unwrap_or_default();
        room.requests.insert((**changed, **seq));
        self.rooms.insert(groups.clone(), room);
        self.waiting.insert(**seq, Waiting { changed: **changed, groups });
    }

    fn follow_review(&mut self, board: &Board, change: &DiffItem<'_, '_, Seq, Revision>) {
        let (DiffItem::Add(seq, _)
        | DiffItem::Remove(seq, _)
        | DiffItem::Update { new: (seq, _), .. }) = change;
        self.reviews.remove(*seq);
        if matches!(change, DiffItem::Remove(..)) {
            return;
        }
        if let Some(entry) = self.matched(board, **seq) {
            let by = entry.work.as_deref().and_then(crate::Work::agent).cloned();
            self.reviews.insert(**seq, by);
        }
    }

    fn matched<'a>(&self, board: &'a Board, seq: Seq) -> Option<&'a Entry> {
        let [_, requests, ..] = board.logs();
        let entry = requests.get(seq)?;
        let fits = self.traits.are_none() || self.wanted.fits(&entry.item);
        fits.then_some(&**entry)
    }

    /// Finds which requests the caps hold back.
    fn find_rooms(&mut self, board: &Board) {
        let capped = !self.caps.is_empty();
        // Other caps or another budget may let any request be claimed.
        let [now, configured] = self.at;
        let mut newest = Revision::default();
        let mut rooms = self.rooms.clone();
        for (groups, room) in self.rooms.iter().filter(|_| capped) {
            let since = board.tasks.has_room(groups).then(|| room.since.unwrap_or(now));
            let since = since.map(|since| since.max(configured));
            if since != room.since {
                rooms.insert(groups.clone(), Room { since, ..room.clone() });
            }
        }
        if !capped && let Some((groups, room)) = self.rooms.get_min() {
            // Nothing holds them back, and there is one room for all.
            let since = Some(configured);
            rooms.insert(groups.clone(), Room { since, ..room.clone() });
        }
        for room in rooms.values() {
            let Some(since) = room.since else { continue };
            let last = room.requests.get_max().map_or(since, |(changed, _)| since.max(*changed));
            newest = newest.max(last);
        }
        (self.rooms, self.newest) = (rooms, newest);
    }
}

impl Room {
    fn after(&self, after: Revision) -> impl Iterator<Item = &(Revision, Seq)> {
        self.requests.range((after.next(), Seq(0))..)
    }
}
