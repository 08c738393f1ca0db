//! Watchers: every revision once and in order, over broken connections and restarts.
//!
//! `BLACKBOARD_WATCH_COMMITS=20000 cargo test --test http watchers::` makes the full run of what is otherwise 4,000
//! commits, since a debug build is busy with the full one for a minute and a half.

use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::follower::{Follower, Frame};
use crate::harness::Server;
use crate::watch_load::{END, Load, Place, Written, address, log_of};

const WATCHERS: usize = 50;

/// Not a line of log for each of thousands of answers.
const QUIET: [&str; 2] = ["--log", "warn"];

fn commits() -> u64 {
    match std::env::var("BLACKBOARD_WATCH_COMMITS") {
        Ok(commits) => commits.parse().expect("BLACKBOARD_WATCH_COMMITS is a number"),
        Err(_) => 4_000,
    }
}

/// Where a connection breaks: mostly after many frames, at times within the first.
fn cut() -> usize {
    let random = Uuid::new_v4().as_u128();
    let below = if random.is_multiple_of(4) { 400 } else { 48 << 10 };
    1 + usize::try_from((random >> 8) % below).expect("a small number")
}

/// One who follows a session from its beginning, over one connection after another.
#[derive(Default)]
struct Watcher {
    cuts: bool,
    last: Option<u64>,
    seen: Vec<Written>,
    connections: usize,
    torn: usize,
    ended: bool,
}

impl Watcher {
    fn start(cuts: bool, place: &Place) -> JoinHandle<Self> {
        let mut place = place.clone();
        tokio::spawn(async move {
            let mut watcher = Self { cuts, ..Self::default() };
            while !watcher.ended {
                watcher.connection(&mut place).await;
            }
            watcher
        })
    }

    /// Follows until the connection ends, or all has been seen.
    async fn connection(&mut self, place: &mut Place) {
        let board = place.board().await;
        // The name has no session at first.
        let query = if self.last.is_none() { "?after=0" } else { "" };
        let Some(follower) = Follower::open(&board, query, self.last).await else { return };
        let mut follower = if self.cuts { follower.cut_after(cut()) } else { follower };
        self.connections += 1;
        while !self.ended {
            let Some(frame) = follower.frame().await else { break };
            self.see(&frame);
        }
        self.torn += usize::from(follower.is_torn());
    }

    fn see(&mut self, frame: &Frame) {
        let last = self.last.unwrap_or(0);
        if frame.data.is_empty() {
            assert_eq!(frame.id, Some(last), "it says that more was read, or less");
            return;
        }
        let commit = frame.commit();
        assert_eq!((frame.id, commit.revision), (Some(last + 1), last + 1), "{frame:?}");
        self.last = frame.id;
        for change in commit.changes {
            let appended = change.kind == "appended";
            assert!(appended || ["created", "agent_put"].contains(&change.kind.as_str()));
            for entry in change.entries {
                let (w, n) = (entry.item.w, entry.item.n);
                assert_eq!(change.log, log_of(w), "{frame:?}");
                let (revision, seq) = (commit.revision, entry.seq);
                self.seen.push(Written { revision, seq, w, n });
                self.ended = w == END;
            }
        }
    }
}

/// What fifty watchers saw is what was written.
async fn judge(watchers: Vec<JoinHandle<Watcher>>, written: &[Written]) {
    let revisions = written.last().expect("an end").revision;
    let (mut torn, mut connections) = (0, 0);
    for watcher in watchers {
        let watcher = watcher.await.unwrap();
        assert_eq!(watcher.last, Some(revisions));
        let wrong = watcher.seen.iter().zip(written).find(|(seen, written)| seen != written);
        assert_eq!(wrong, None, "something was seen that was not acknowledged so");
        assert_eq!(watcher.seen.len(), written.len(), "something acknowledged was not seen");
        torn += watcher.torn;
        connections += watcher.connections;
    }
    eprintln!("{revisions} revisions over {connections} connections, {torn} cut within a frame");
    assert!(torn > 0, "no connection was cut within a frame");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_watchers_see_every_revision_once_and_in_order() {
    let server = Server::start_with(&QUIET);
    let (_address, place) = Place::of(&server);
    let watchers = (0..WATCHERS).map(|n| Watcher::start(n % 2 == 0, &place)).collect();
    let written = Load::start(&place, commits()).ended().await;
    judge(watchers, &written).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_go_on_after_a_kill_and_see_every_revision_once() {
    let mut server = Server::start_with(&QUIET);
    let (there, place) = Place::of(&server);
    let watchers = (0..WATCHERS).map(|n| Watcher::start(n % 2 == 0, &place)).collect();
    let commits = commits() / 4;
    let mut load = Load::start(&place, commits);
    for moment in [commits / 4, commits / 2] {
        load.acknowledged(moment).await;
        there.send_replace(None);
        server.kill();
        server.start_again();
        there.send_replace(Some(address(&server)));
    }
    judge(watchers, &load.ended().await).await;
}
