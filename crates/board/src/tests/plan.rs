//! Random writes for the tests of this layer: every command on every log, mostly sensible.
//!
//! Few distinct values are used, so that equal items, repeated images and stale conditions occur.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::board::*;
use super::shared_plan::{a_fence, agent_states, caps, profiles, shared, standing};
use crate::json::Exact;
use crate::*;
use crate::{BoardCommand, CheckpointCommand, LogCommand, SessionCommand};

/// A write and the time of its decision.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    command: Command,
    wanted: Wanted,
    author: Option<AgentName>,
    fence: Option<Fence>,
    key: Option<Key>,
    /// The step of the clock, which may be negative.
    clock: i64,
    policy: Policy,
}

#[derive(Clone, Debug)]
enum Wanted {
    Anything,
    Existing,
    Absent,
    /// Left by one of these many revisions before the head.
    Left(Vec<u64>),
    /// Another session's.
    Foreign,
}

impl Step {
    /// The write as it meets this board.
    pub(crate) fn write(&self, board: &Board) -> Write {
        let versions = |versions| Some(Matches::Versions(versions));
        let left = |ago: &u64| board.at_version(Revision(board.revision().0.saturating_sub(*ago)));
        let mut condition = Condition::default();
        match &self.wanted {
            Wanted::Anything => {}
            Wanted::Existing => condition.matches = Some(Matches::Any),
            Wanted::Absent => condition.absent = true,
            Wanted::Left(ago) => condition.matches = versions(ago.iter().map(left).collect()),
            Wanted::Foreign => {
                let session = SessionId(uuid::Uuid::from_u128(99));
                condition.matches = versions(vec![Version { session, ..board.version() }]);
            }
        }
        let write = write_if(condition, standing(&self.command, board));
        let fence = self
            .fence
            .map(|fence| Fence { fence: a_fence(board, fence.request, fence.fence), ..fence });
        let (author, key) = (self.author.clone(), self.key.clone());
        Write { terms: Terms { author, fence, key, ..write.terms }, ..write }
    }

    /// The moment, and moves the clock there.
    pub(crate) fn moment(&self, clock: &mut i64, nonce: u64) -> Moment<'_> {
        // The system's clock is never before 1970, and an archive with such times is refused.
        *clock = (*clock + self.clock).max(0);
        Moment { nonce: Nonce(nonce), ..at(*clock, &self.policy) }
    }
}

pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let agents = option::of(select(vec![agent("HostAgent"), agent("a")]));
    const HOURS_MS: i64 = 60 * 60 * 1000;
    let clock = prop_oneof![
        3 => Just(0),
        12 => 0_i64..5_000,
        3 => -5_000_i64..0,
        1 => Just(25 * HOURS_MS),
    ];
    let fence = (1_u64..4, 0_u64..3)
        .prop_map(|(request, fence)| Fence { request: Seq(request), fence: Revision(fence) });
    let fence = option::weighted(0.1, fence);
    let key = option::weighted(0.2, (select(vec!["k", "l", "é"]), 0_u8..2)).prop_map(|key| {
        key.map(|(key, print)| Key { key: key.into(), fingerprint: Digest::of(&[print]) })
    });
    let parts = (command(), wanted(), agents, fence, key, clock, policy());
    let step = parts.prop_map(|(command, wanted, author, fence, key, clock, policy)| Step {
        command,
        wanted,
        author,
        fence,
        key,
        clock,
        policy,
    });
    vec(step, 1..most)
}

fn policy() -> impl Strategy<Value = Policy> {
    let tight = Policy { session_bytes_max: 200, session_blob_bytes_max: 6, ..POLICY };
    let seeding = Policy { qa_pairs: items([r#"{"question":"q","answer":"a"}"#]), ..POLICY };
    let closed = Policy { auto_create: false, ..POLICY };
    prop_oneof![6 => Just(POLICY), 1 => Just(tight), 1 => Just(seeding), 1 => Just(closed)]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        12 => Just(Wanted::Anything),
        1 => Just(Wanted::Existing),
        1 => Just(Wanted::Absent),
        3 => vec(0_u64..8, 0..8).prop_map(Wanted::Left),
        1 => Just(Wanted::Foreign),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let put = (settings(), labels(), vec(an_item(), 0..3));
    let entry = || (log(), (0_u64..12).prop_map(Seq));
    let basis = option::of((0_u64..20).prop_map(Revision));
    prop_oneof![
        3 => put.prop_map(|(settings, labels, qa_pairs)| {
            Command::Session(SessionCommand::Put { settings, labels, qa_pairs })
        }),
        2 => Just(Command::Session(SessionCommand::Delete)),
        6 => an_upload(),
        12 => of_the_past(),
        12 => (log(), some_items()).prop_map(|(log, items)| Command::Log(log, LogCommand::Append { items })),
        3 => (log(), some_items()).prop_map(|(log, items)| Command::Log(log, LogCommand::Replace { items })),
        4 => (log(), which()).prop_map(|(log, which)| Command::Log(log, LogCommand::Remove { which })),
        5 => (entry(), an_item(), basis).prop_map(|((log, seq), item, basis)| {
            Command::Log(log, LogCommand::PutEntry { seq, item, basis })
        }),
        3 => entry().prop_map(|(log, seq)| Command::Log(log, LogCommand::DeleteEntry { seq })),
        2 => ([some_items(), some_items(), some_items(), some_items()], a_document())
            .prop_map(|(logs, state)| Command::Board(BoardCommand::Replace { logs, state })),
        1 => any::<bool>().prop_map(|state| Command::Board(BoardCommand::Clear { state })),
        40 => shared(),
    ]
}

fn an_upload() -> impl Strategy<Value = Command> {
    let media_type = select(vec!["text/plain", "a/b"]).prop_map(|text| text.parse().unwrap());
    (blob(), media_type, 0_i64..5_000).prop_map(|(bytes, media_type, renewed_after_ms)| {
        let (sha256, bytes) = (Digest::of(bytes), bytes.len() as u64);
        Command::Session(SessionCommand::PutBlob { sha256, bytes, media_type, renewed_after_ms })
    })
}

/// Checkpoints, and commands that [`in_time`] gives their boards.
fn of_the_past() -> impl Strategy<Value = Command> {
    let name = || select(vec!["a", "b", "1é"]).prop_map(|name| name.parse().unwrap());
    let at = || (0_u64..40).prop_map(|at| Arc::new(Board::absent(ID, Revision(at))));
    prop_oneof![
        3 => name().prop_map(|name| Command::Checkpoint(name, CheckpointCommand::Put)),
        2 => name().prop_map(|name| Command::Checkpoint(name, CheckpointCommand::Remove)),
        4 => at().prop_map(|then| Command::Session(SessionCommand::Restore { then })),
        6 => at().prop_map(|board| Command::Session(SessionCommand::Adopt { board, fork_of: None })),
    ]
}

/// The write with one of these boards as that to restore, and one of those forked as this session.
pub(crate) fn in_time(
    mut write: Write,
    past: &[Arc<Board>],
    elders: &[Arc<Board>],
    fork: SessionId,
) -> Write {
    let pick = |boards: &[Arc<Board>], at: &Board| {
        let at = usize::try_from(at.revision().0).unwrap() % boards.len().max(1);
        boards.get(at).cloned()
    };
    if let Command::Session(SessionCommand::Restore { then }) = &mut write.command
        && let Some(earlier) = pick(past, then)
    {
        *then = earlier;
    }
    if let Command::Session(SessionCommand::Adopt { board, fork_of }) = &mut write.command
        && let Some(elder) = pick(elders, board)
    {
        *fork_of = elder.life().map(|life| life.name.clone());
        *board = Arc::new(elder.forked(fork));
    }
    write
}

/// The commits of these writes, each with the board that it follows.
pub(crate) fn history(steps: &[Step]) -> Vec<(Board, Commit)> {
    let (mut board, mut clock) = (absent(), 0);
    let (mut commits, mut past, mut elders) = (Vec::new(), Vec::new(), Vec::new());
    for (nonce, step) in (0..).zip(steps) {
        let moment = step.moment(&mut clock, nonce);
        let expiry = expire(&board, moment.now, moment.nonce);
        let fork = SessionId(uuid::Uuid::from_u128(1_000 + u128::from(nonce)));
        for expires in [true, false] {
            let (before, commit) = if expires {
                (board.clone(), expiry.clone())
            } else {
                let write = in_time(step.write(&board), &past, &elders, fork);
                let decided = decide_and_keep(&board, &write, moment);
                let commit = decided.ok().and_then(|decision| decision.commit);
                let follows = if let (
                    Command::Session(SessionCommand::Adopt { board: coming, .. }),
                    Some(_),
                ) = (&write.command, &commit)
                {
                    Board::clone(coming)
                } else {
                    board.clone()
                };
                (follows, commit)
            };
            let Some(commit) = commit else { continue };
            board = before.clone();
            apply(&mut board, &commit);
            if commit.ends_session() || commit.kind() == "adopted" {
                past.clear();
            }
            if board.life().is_some() {
                past.push(Arc::new(board.clone()));
                elders.push(Arc::new(board.clone()));
            }
            commits.push((before, commit));
        }
    }
    commits
}

fn a_document() -> impl Strategy<Value = Option<Json>> {
    option::of(select(vec![json("{}"), json(r#"{"a":{"b":1}}"#), json("[]")]))
}

pub(crate) fn log() -> impl Strategy<Value = LogName> {
    let [questions, requests, trajectories, screenshots] = LogName::BOARD;
    let owned = [memory("a"), memory("日本 "), messages("a"), messages("日本 ")];
    select(
        [questions, requests, trajectories, screenshots]
            .into_iter()
            .chain(owned)
            .collect::<Vec<_>>(),
    )
}

fn which() -> impl Strategy<Value = Which> {
    let steps = vec(select(vec!["1", "2", "2.5", "-0", "1e2"]), 0..3);
    prop_oneof![
        1 => Just(Which::All),
        2 => steps.prop_map(|s| Which::Steps(s.into_iter().filter_map(Exact::parse).collect())),
        2 => (0_usize..5).prop_map(Which::AllButNewest),
    ]
}

pub(crate) fn some_items() -> impl Strategy<Value = Vec<Item>> {
    vec(an_item(), 0..4)
}

fn an_item() -> impl Strategy<Value = Item> {
    let texts = [
        "{}",
        r#"{"a":1,"b":2}"#,
        r#"{"question":"q"}"#,
        r#"{"text":"t","expired":1,"b" : 2}"#,
        r#"{"question":"q","answer":null}"#,
        r#"{"b":2,"a":1}"#,
        r#"{"step":1,"status":"FAIL"}"#,
        r#"{"step":2.0,"results":[{"status":"OK"}]}"#,
        r#"{"step":100}"#,
        r#"{"step":-0.0,"n":1E5}"#,
        r#"{"step":2.5,"step":2}"#,
        r#"{"cost":0.1}"#,
        r#"{"\u0063ost":-2.5e3}"#,
        r#"{"$serde_json::private::RawValue":"1","\u0061":"\ud83d\ude80\u0000"}"#,
        "{ \"tall\" :\n [ \"日本\", null,\ttrue ] }",
    ];
    let mut all = items(texts);
    all.extend([&b"one"[..], b"two", b"three"].map(screenshot));
    let cut = r#"{"image_str":"data:image/jpeg;x=y;base64,dHdv","metadata":{"a":1}}"#;
    all.push(Screenshot::from_json(cut).unwrap().item);
    all.extend(BLOBS.map(|bytes| item(&format!(r#"{{"a":{{"$blob":"{}"}}}}"#, Digest::of(bytes)))));
    select(all)
}

/// Some have the bytes of an image.
const BLOBS: [&[u8]; 3] = [b"one", b"two", b"four"];

fn blob() -> impl Strategy<Value = &'static [u8]> {
    select(BLOBS.to_vec())
}

fn settings() -> impl Strategy<Value = Set<SettingsPatch>> {
    let keys = prop_oneof![
        2 => Just(Set::Keep),
        1 => Just(Set::Reset),
        1 => vec("[ab\u{e9}\\\\]{0,3}", 0..3).prop_map(Set::To),
    ];
    let keeps = prop_oneof![
        2 => Just(Set::Keep),
        1 => Just(Set::Reset),
        1 => any::<bool>().prop_map(Set::To),
    ];
    let patch = (keys, keeps, max_items(), ttls(), agent_states(), profiles(), caps()).prop_map(
        |(history_keys, screenshot_to_memory, max_items, ttl, agent_states, profiles, caps)| {
            SettingsPatch {
                history_keys,
                screenshot_to_memory,
                max_items,
                ttl,
                history: Set::Keep,
                agent_states,
                profiles,
                cost_max: Set::Keep,
                running_max: caps,
            }
        },
    );
    prop_oneof![1 => Just(Set::Keep), 1 => Just(Set::Reset), 3 => patch.prop_map(Set::To)]
}

fn max_items() -> impl Strategy<Value = Set<MaxItems>> {
    let max = || (1_usize..4).prop_map(|max| std::num::NonZeroUsize::new(max).unwrap());
    let each = (option::of(max()), option::of(max())).prop_map(|(requests, memory)| {
        MaxItems::Each(MaxItemsEach { requests, memory, ..Default::default() })
    });
    prop_oneof![
        4 => Just(Set::Keep),
        2 => Just(Set::Reset),
        1 => max().prop_map(|max| Set::To(MaxItems::All(max))),
        1 => each.prop_map(Set::To),
    ]
}

fn ttls() -> impl Strategy<Value = Set<Ttl>> {
    prop_oneof![
        4 => Just(Set::Keep),
        2 => Just(Set::Reset),
        1 => select(vec!["3s", "1h", "30d"]).prop_map(|text| Set::To(ttl(text))),
    ]
}

fn labels() -> impl Strategy<Value = Set<LabelsPatch>> {
    let few = btree_map("[a-c]", option::of("[xy\u{0}\"]"), 0..3);
    let many = (60..66_u32).prop_map(|n| {
        (0..n).map(|i| (format!("l{i}"), Some(String::new()))).collect::<LabelsPatch>()
    });
    prop_oneof![
        6 => Just(Set::Keep),
        2 => Just(Set::Reset),
        6 => few.prop_map(Set::To),
        1 => many.prop_map(Set::To),
    ]
}
