//! Starting: every session found in the store, what came to its end by time since taken note of, and the
//! threads set to work.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::archive::Archives;
use super::deadlines::Deadlines;
use super::history::Past;
use super::history::deletion::{Endings, is_over};
use super::history::retention::Keeper;
use super::history::retention_schedule::Retentions;
use super::image_pins::Holds;
use super::images::gc::Collector;
use super::images::gc_schedule::Looks;
use super::images::reaper::{Orphans, Reaper};
use super::limiter::Turns;
use super::maintenance::compaction::{Activity, Settler};
use super::sessions::directory::Directory;
use super::sessions::loader::Loads;
use super::sessions::memory_budget::{Evictor, Memory};
use super::sessions::past_boards::PastBoards;
use super::sessions::session::Session;
use super::sessions::tombstones::Tombstones;
use super::startup::scan::{Found, Strays, find_all};
use super::threads::Supervisor;
use super::thumbnails::Thumbnails;
use super::watch::waker::{Bells, WakeUps, Waker};
use super::writer::Writer;
use super::writer::queue;
use super::writer::receiver::Jobs;
use super::writer::retry::Postponed;
use super::{Clock, Damage, Inner, LoadError, Options, QUEUE_WRITES_MAX, Service, Tending};
use crate::board::{Extent, Policy, Revision, SessionId, SessionName, Timestamp};
use crate::fairness::Queue;
use crate::store::Store;

/// How many forks and purges may wait for those before them.
const BASES_WAITING_MAX: usize = 64;

/// How many forks are given their images at once, and how many may wait for that.
const LINKS_MAX: u64 = 4;
const LINKS_WAITING_MAX: usize = 64;

/// What is known of the sessions besides what each of them is.
#[derive(Default)]
struct Known {
    damage: Vec<Damage>,
    /// When something in which session comes to its end by time.
    deadlines: Deadlines<Timestamp>,
    retentions: Retentions,
    live: HashSet<SessionId>,
    endings: Endings,
    /// Names whose sessions were deleted, and when.
    deleted: Vec<(SessionName, Timestamp)>,
}

impl Service {
    /// Finds every session in the store, takes note of what came to its end by time since, and starts
    /// the writer.
    ///
    /// # Errors
    ///
    /// [`LoadError`] where the store cannot be read, or a damaged row does not tell whose it is.
    pub fn start(store: Arc<dyn Store>, policy: Policy, clock: Clock) -> Result<Self, LoadError> {
        Self::start_with(store, policy, clock, Options::default())
    }

    /// The same in another way than the default.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub fn start_with(
        store: Arc<dyn Store>,
        policy: Policy,
        clock: Clock,
        options: Options,
    ) -> Result<Self, LoadError> {
        let Options { qa_session, memory_budget, thumbnails, collection, reads_only, salvages } =
            options;
        let directory = Arc::new(Directory::new());
        let memory = Arc::new(Memory::new(memory_budget));
        let past_boards = Arc::new(PastBoards::new(Arc::clone(&memory)));
        let supervisor = Supervisor::default();
        // Later readings are compared with this one, so that no jump is missed.
        let now = clock.read().now;
        let mut known = find(&*store, &directory, &memory, now, salvages)?;
        if reads_only {
            known.deadlines = Deadlines::default();
            known.deleted = Vec::new();
        }
        let thumbnails = Arc::new(Thumbnails::new(thumbnails));
        let orphans = Arc::new(Orphans::default());
        let retentions = Arc::new(known.retentions);
        let tombstones = Arc::new(Tombstones::new(Arc::clone(&retentions.signal)));
        known.deleted.iter().for_each(|(name, at)| tombstones.add(name, *at));
        let jobs = Arc::new(Queue::new(QUEUE_WRITES_MAX));
        let bells = Arc::new(Bells::new());
        let recent_bytes = Arc::new(AtomicUsize::new(0));
        let bases = Arc::new(Turns::new(1, BASES_WAITING_MAX));
        let activity = Arc::new(Activity::default());
        let wake_ups = Arc::new(WakeUps::default());
        let waker = Waker { wake_ups: Arc::clone(&wake_ups), bells: Arc::clone(&bells) };
        let waker = waker.start(&supervisor)?;
        let loads = Loads::new(Arc::clone(&store), Arc::clone(&memory), Arc::clone(&directory));
        let gathers = qa_session.as_ref().map(|qa| qa.name.clone());
        let mut writer = Writer {
            jobs: Jobs(Arc::clone(&jobs)),
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
            policy,
            clock: clock.clone(),
            deadlines: known.deadlines,
            bells: Arc::clone(&bells),
            wake_ups,
            recent_bytes: Arc::clone(&recent_bytes),
            retentions: Arc::clone(&retentions),
            tombstones: Arc::clone(&tombstones),
            qa_session,
            sweep_after: None,
            postponed: Postponed::default(),
            memory: Arc::clone(&memory),
            loads: loads.clone(),
            orphans: Arc::clone(&orphans),
            activity: Arc::clone(&activity),
            made: 0,
            warming: HashMap::new(),
        };
        // What came to its end while the server was down: before anybody can ask.
        writer.sweep_all();
        let writer = supervisor.start_vital("writer", || writer.run())?;
        let (holds, looks) = (Arc::new(Holds::default()), Arc::new(Looks::new(collection)));
        let keeper = Keeper {
            retentions,
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
            clock: clock.clone(),
            jobs: Arc::clone(&jobs),
            bases: Arc::clone(&bases),
            looks: Arc::clone(&looks),
            endings: Mutex::new(known.endings),
            tombstones,
            memory: Arc::clone(&memory),
        };
        let (room, stopping) = (queue::room(), CancellationToken::new());
        let collector = Collector {
            looks: Arc::clone(&looks),
            clock: clock.clone(),
            holds: Arc::clone(&holds),
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
            loads: loads.clone(),
            jobs: Arc::clone(&jobs),
            room: room.clone(),
            stopping: stopping.clone(),
        };
        let evictor = Evictor {
            memory: Arc::clone(&memory),
            past_boards: Arc::clone(&past_boards),
            directory: Arc::clone(&directory),
            store: Arc::clone(&store),
        };
        let reaper = Reaper {
            orphans: Arc::clone(&orphans),
            store: Arc::clone(&store),
            thumbnails: Arc::clone(&thumbnails),
            live: (!reads_only).then_some(known.live),
        };
        let settler =
            Settler { directory: Arc::clone(&directory), store: Arc::clone(&store), activity };
        let tending = Tending {
            keeper: keeper.start(&supervisor)?,
            collector: collector.start(&supervisor)?,
            writer,
            waker,
            evictor: evictor.start(&supervisor)?,
            loading: loads.start(&supervisor)?,
            settler: settler.start(&supervisor)?,
            reaper: reaper.start(&supervisor)?,
        };
        let inner = Inner {
            directory,
            store,
            jobs,
            clock,
            room,
            preparing: queue::preparing(),
            preparing_again: queue::preparing_again(),
            supervisor,
            damage: known.damage,
            stopping,
            bells,
            recent_bytes,
            past: Past::new(past_boards),
            bases,
            links: Turns::new(LINKS_MAX, LINKS_WAITING_MAX),
            archives: Archives::new(),
            holds,
            looks,
            orphans,
            memory,
            loads,
            thumbnails,
            qa_session: gathers,
            tending: Mutex::new(Some(tending)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// Puts every session into the directory, and tells what else there is to know.
fn find(
    store: &dyn Store,
    directory: &Directory,
    memory: &Memory,
    now: Timestamp,
    salvages: bool,
) -> Result<Known, LoadError> {
    let (mut found, damage, mut strays) = find_all(store, memory.budget())?;
    let (mut damage, mut nameless): (Vec<_>, Vec<_>) =
        damage.into_iter().partition(|damage| damage.name.is_some());
    if let Some(first) = nameless.pop_if(|_| !salvages) {
        return Err(LoadError::Nameless(first));
    }
    for damage in &nameless {
        store.forget(&[damage.session])?;
    }
    forget_replaced(store, &mut found, &mut damage, &mut strays);
    directory.identities().set_strays(strays);
    damage.append(&mut nameless);
    let mut known = Known { damage, ..Known::default() };
    // Of two sessions of one name the one that exists stands, else the last one.
    found.sort_by_cached_key(|found| (!found.is_live(), Reverse(found.shown.extent().revision)));
    let stored = store.sessions();
    let ended: HashSet<_> = stored.iter().filter(|one| one.ended).map(|one| one.session).collect();
    for found in found {
        let session = found.shown.extent().session;
        if found.is_live() {
            known.live.insert(session);
        } else if is_over(found.shown.updated_at(), now) || directory.get(&found.name).is_some() {
            // A later session of its name has a higher revision.
            known.endings.over.push(session);
            continue;
        } else if !ended.contains(&session) {
            let name = found.name.clone();
            known.endings.whole.push(Session::new(name, found.shown.clone()).summary());
        }
        add(found, directory, memory, &mut known);
    }
    Ok(known)
}

/// Forgets damaged sessions that were deleted or replaced: their names have later sessions, and only a stop came
/// between. Any other damaged one is at the last revision that its name is known to have had.
fn forget_replaced(
    store: &dyn Store,
    found: &mut Vec<Found>,
    damage: &mut Vec<Damage>,
    strays: &mut Strays,
) {
    let mut latest: HashMap<SessionName, (Option<SessionId>, Revision)> = HashMap::new();
    let damaged = found.iter().filter(|found| found.is_damaged);
    latest.extend(damaged.map(|found| (found.name.clone(), Default::default())));
    for sound in found.iter().filter(|found| !found.is_damaged) {
        let Extent { session, revision, .. } = sound.shown.extent();
        if let Some(last) = latest.get_mut(&sound.name).filter(|last| last.1 < revision) {
            *last = (Some(session), revision);
        }
    }
    found.retain_mut(|found| {
        let Some(&(later, revision)) = latest.get(&found.name).filter(|_| found.is_damaged) else {
            return true;
        };
        let Extent { session, revision: own, .. } = found.shown.extent();
        // A row that is damaged may tell a revision that is too low; identities are in the order of time.
        if own >= revision || Some(session) >= later {
            found.raise_to(revision);
            return true;
        }
        let mut identities = strays.remove(&session).unwrap_or_default();
        identities.push(session);
        damage.retain(|damage| !identities.contains(&damage.session));
        if let Err(error) = store.forget(&identities) {
            tracing::warn!(%session, %error, "a damaged session was left behind");
        }
        false
    });
}

fn add(found: Found, directory: &Directory, memory: &Memory, known: &mut Known) {
    let Found { name, shown, snapshot_bytes, stored, is_damaged } = found;
    let (id, exists) = (shown.extent().session, shown.life().is_some());
    if directory.get(&name).is_some() {
        if !is_damaged {
            let former = Session::new(name, shown).summary();
            directory.identities().add_former(former, stored);
        }
        return;
    }
    if let Some(history) = shown.life().and_then(|life| life.settings.history) {
        known.retentions.note_commit(&name, history);
    }
    if !exists && !is_damaged {
        known.deleted.push((name.clone(), shown.updated_at()));
    }
    known.deadlines.set(&name, shown.next_due().filter(|_| !is_damaged));
    let session = Arc::new(Session::new(name, shown));
    session.note_snapshot(snapshot_bytes);
    if is_damaged {
        session.spoil();
    }
    memory.weigh(&session);
    directory.identities().add(id, &session, stored);
    directory.insert(session, exists);
}
