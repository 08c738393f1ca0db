//! Start of the service: recovers sessions, stores overdue expiries, starts threads.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::archive::Archives;
use super::claims::queue::Queues;
use super::deadlines::Deadlines;
use super::deps::Deps;
use super::heads::{Follow, HeadChecks};
use super::history::History;
use super::history::deletion::{Endings, is_over};
use super::history::retention_schedule::RetentionSchedule;
use super::images::Images;
use super::job::JobQueue;
use super::maintenance::compaction::Compaction;
use super::search::Searches;
use super::sessions::Sessions;
use super::sessions::directory::Directory;
use super::sessions::memory_budget::MemoryBudget;
use super::sessions::session::Session;
use super::startup::scan::{ScannedSession, Strays, find_all};
use super::watch::Watches;
use super::watch::matches::Attentions;
use super::writer::patch_turns::PatchTurns;
use super::writer::{Parts, Writer};
use super::{Damage, Inner, LoadError, Options, Service};
use blackboard_board::{Extent, Policy, Revision, SessionId, SessionName, Timestamp};
use blackboard_clock::Clock;
use blackboard_store::{EmbeddedStore, Store};

/// Results of the startup scan besides the sessions.
#[derive(Default)]
struct Known {
    damage: Vec<Damage>,
    /// The next expiry in each session.
    deadlines: Deadlines<Timestamp>,
    retentions: RetentionSchedule,
    /// The sessions that exist, unless the store is only read.
    live: Option<HashSet<SessionId>>,
    endings: Endings,
}

impl Service {
    /// Scans the store for sessions, stores expiries of the downtime and starts the threads.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the store cannot be read, or if a damaged row has no known session.
    pub fn start(store: Arc<dyn Store>, policy: Policy, clock: Clock) -> Result<Self, LoadError> {
        Self::start_with(store, policy, clock, Options::default())
    }

    /// Starts the service with other options than the default.
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
        let (service, writer) = Self::assemble(Deps::new(store, clock), policy, options)?;
        service.inner.writer.desk.start(writer, &service.inner.deps)?;
        Ok(service)
    }

    /// Starts all but the writer, which has stored the expiries of the downtime.
    pub(super) fn assemble(
        deps: Deps,
        policy: Policy,
        options: Options,
    ) -> Result<(Self, Writer), LoadError> {
        let sessions = Sessions::new(&deps, options.memory_budget);
        let found = find(&deps, &sessions, &options)?;
        sessions.start(&deps)?;
        let (jobs, stored) = (JobQueue::default(), (options.collection, options.thumbnails));
        let images = Images::start(&deps, &sessions, &jobs, stored, found.live)?;
        let (retentions, endings) = (found.retentions, found.endings);
        let history = History::start(&deps, &sessions, &images, &jobs, retentions, endings)?;
        let watches = Watches::start(&deps)?;
        let search = Searches::progress_of(options.search.as_ref());
        let follow = search
            .clone()
            .map(|search| -> Follow { Box::new(move |name| search.note(name, None)) });
        let others = (&watches, &images, follow);
        let heads = HeadChecks::start(&deps, &sessions, others, &jobs)?;
        let searches = Searches::start(&deps, &sessions, &heads, options.search.zip(search))?;
        let activity = Compaction::start(&deps, &sessions.directory)?;
        let parts = Parts {
            sessions: &sessions,
            history: &history,
            watches: &watches,
            images: &images,
            activity,
            searches: &searches,
        };
        let (qa_session, deadlines) = (options.qa_session, found.deadlines);
        let (writer, entrance) = Writer::new(&deps, jobs, parts, policy, qa_session, deadlines);
        let (damage, archives) = (found.damage, Archives::new(&*deps.store));
        let queues = Queues::default();
        let inner = Inner {
            deps,
            damage,
            sessions,
            writer: entrance,
            heads,
            history,
            images,
            watches,
            archives,
            attentions: Attentions::default(),
            queues,
            patches: PatchTurns::default(),
            searches,
        };
        Ok((Self { inner: Arc::new(inner) }, writer))
    }
}

/// Scans an embedded store and adds every session to the directory.
fn find(deps: &Deps, sessions: &Sessions, options: &Options) -> Result<Known, LoadError> {
    // Later readings are compared with this one, so that no jump is missed.
    let now = deps.clock.read().now;
    let Some(store) = deps.store.embedded() else {
        // The leader looks for what nobody needs.
        let live = (!options.reads_only).then(HashSet::new);
        return Ok(Known { live, ..Known::default() });
    };
    let Sessions { directory, memory, .. } = sessions;
    let (mut found, damage, mut strays) = find_all(store, memory.budget())?;
    let (mut damage, mut nameless): (Vec<_>, Vec<_>) =
        damage.into_iter().partition(|damage| damage.name.is_some());
    if let Some(first) = nameless.pop_if(|_| !options.salvages) {
        return Err(LoadError::Nameless(first));
    }
    for damage in &nameless {
        store.forget(&[damage.session])?;
    }
    forget_replaced(store, &mut found, &mut damage, &mut strays);
    directory.identities().set_strays(strays);
    damage.append(&mut nameless);
    let (mut known, mut live) = (Known { damage, ..Known::default() }, HashSet::new());
    // Of two sessions of one name the existing one is kept, else the last one.
    found.sort_by_cached_key(|found| (!found.is_live(), Reverse(found.shown.extent().revision)));
    for found in found {
        let session = found.shown.extent().session;
        if found.is_live() {
            live.insert(session);
        } else if is_over(found.shown.updated_at(), now) || directory.get(&found.name).is_some() {
            // A later session of its name has a higher revision.
            known.endings.over.push(session);
            continue;
        }
        add(found, directory, memory, &mut known);
    }
    if options.reads_only {
        known.deadlines = Deadlines::default();
        known.endings.deleted.clear();
    } else {
        known.live = Some(live);
    }
    Ok(known)
}

/// Deletes damaged sessions whose names have later sessions. Any other damaged one is raised to the last known
/// revision of its name.
fn forget_replaced(
    store: &dyn EmbeddedStore,
    found: &mut Vec<ScannedSession>,
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
        // A damaged row may have too low a revision; ids are in the order of time.
        if own >= revision || Some(session) >= later {
            found.raise_to(revision);
            return true;
        }
        let mut identities = strays.remove(&session).unwrap_or_default();
        identities.push(session);
        damage.retain(|damage| !identities.contains(&damage.session));
        if let Err(error) = store.forget(&identities) {
            tracing::warn!(%session, %error, "a damaged session could not be deleted");
        }
        false
    });
}

fn add(found: ScannedSession, directory: &Directory, memory: &MemoryBudget, known: &mut Known) {
    let ScannedSession { name, shown, snapshot_bytes, stored, is_damaged } = found;
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
        known.endings.deleted.push((name.clone(), shown.updated_at()));
    }
    known.deadlines.set(&name, shown.next_due().filter(|_| !is_damaged));
    let session = Arc::new(Session::new(name, shown));
    session.note_snapshot(snapshot_bytes);
    if is_damaged {
        session.mark_damaged();
    }
    memory.weigh(&session);
    directory.identities().add(id, &session, stored);
    directory.insert(session, exists);
}
