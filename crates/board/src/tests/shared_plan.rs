//! Random commands on shared parts: state, profiles and requests, alone and in transactions.
//!
//! Few paths, agents and requests are used, so that commands collide.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::board::*;
use super::plan::{log, some_items};
use crate::*;
use crate::{AgentCommand, LogCommand, QuestionCommand, RequestCommand};

/// The fence that stands on a request, where 0 is asked for.
pub(crate) fn a_fence(board: &Board, request: Seq, asked: Revision) -> Revision {
    let entry = board.log(&LogName::Requests).and_then(|log| log.get(request));
    let stands = entry.and_then(|entry| entry.work.as_deref()).and_then(Work::fence);
    stands.filter(|_| asked == Revision(0)).unwrap_or(asked)
}

/// The command with the fences and versions that stand, where it asks for them.
pub(crate) fn standing(command: &Command, board: &Board) -> Command {
    let mut command = command.clone();
    if let Command::Request(
        request,
        RequestCommand::Finish { fence: Some(fence), .. }
        | RequestCommand::Fail { fence: Some(fence), .. }
        | RequestCommand::Judge { fence: Some(fence), .. },
    ) = &mut command
    {
        *fence = a_fence(board, *request, *fence);
    }
    if let Command::Transact(transaction) = &mut command {
        for test in &mut transaction.tests {
            if let Test::InVersion(path, Some(version)) = test
                && let Some(value) = board.state().value(path)
            {
                *version = board.at_version(value.changed());
            }
        }
        for operation in transaction.then.iter_mut().chain(&mut transaction.otherwise) {
            *operation = standing(operation, board);
        }
    }
    command
}

pub(crate) fn shared() -> impl Strategy<Value = Command> {
    let transaction = (vec(test(), 0..3), operations(), operations());
    prop_oneof![
        18 => operation(),
        2 => (an_agent(), a_profile()).prop_map(|(agent, profile)| {
            Command::Agent(agent, AgentCommand::Put { profile })
        }),
        1 => an_agent().prop_map(|agent| Command::Agent(agent, AgentCommand::Remove)),
        1 => Just(Command::RemoveAgents),
        2 => a_request().prop_map(|request| Command::Request(request, RequestCommand::Release)),
        4 => (option::of(an_agent()), a_request())
            .prop_map(|(agent, message)| Command::Ack { agent, message }),
        6 => transaction.prop_map(|(tests, then, otherwise)| {
            Command::Transact(Box::new(Transaction { tests, then, otherwise }))
        }),
    ]
}

fn operations() -> impl Strategy<Value = Vec<Command>> {
    vec(operation(), 0..6)
}

/// The operations of a transaction.
fn operation() -> impl Strategy<Value = Command> {
    prop_oneof![
        9 => (a_path(), an_edit()).prop_map(|(path, edit)| Command::State(path, edit)),
        3 => (log(), some_items()).prop_map(|(log, items)| Command::Log(log, LogCommand::Append { items })),
        3 => (a_request(), a_ttl()).prop_map(|(request, ttl)| Command::Request(request, RequestCommand::Claim { ttl })),
        2 => (a_request(), fence(), reason()).prop_map(|(request, fence, result)| {
            Command::Request(request, RequestCommand::Finish { fence, result })
        }),
        2 => (a_request(), fence(), reason(), option::of(a_ttl())).prop_map(|(request, fence, reason, retry_in)| {
            Command::Request(request, RequestCommand::Fail { fence, reason, retry_in })
        }),
        1 => (a_request(), option::of(a_time())).prop_map(|(request, deadline)| {
            Command::Request(request, RequestCommand::Retry { deadline })
        }),
        1 => (a_request(), reason()).prop_map(|(request, reason)| {
            Command::Request(request, RequestCommand::Cancel { reason })
        }),
        3 => (a_request(), fence(), any::<bool>(), reason()).prop_map(|(request, fence, accepted, reason)| {
            Command::Request(request, RequestCommand::Judge { fence, accepted, reason })
        }),
        3 => (some_items(), a_plan()).prop_map(|(items, plan)| Command::Plan { items, plan }),
        2 => (a_wanted(), 0_u64..3, a_ttl()).prop_map(|(wanted, from, ttl)| {
            Command::ClaimNext { wanted, from: Rank::new(Priority::DEFAULT, Seq(from)), ttl }
        }),
        2 => (some_items(), a_ttl(), option::of(select(vec!["d", "\"é"]))).prop_map(
            |(items, ttl, default)| Command::Ask { items, ttl, default: default.map(str::to_owned) }
        ),
        1 => (1_u64..6).prop_map(|question| Command::Question(Seq(question), QuestionCommand::Skip)),
        1 => (1_u64..6).prop_map(|question| Command::Question(Seq(question), QuestionCommand::Answer { answer: "\"so\"".to_owned() })),
        2 => (an_agent(), a_profile()).prop_map(|(agent, patch)| {
            Command::Agent(agent, AgentCommand::Patch { patch })
        }),
    ]
}

fn fence() -> impl Strategy<Value = Option<Revision>> {
    option::of((0_u64..3).prop_map(Revision))
}

fn reason() -> impl Strategy<Value = Option<Json>> {
    option::of(select(vec![json("null"), json("[1]")]))
}

fn a_plan() -> impl Strategy<Value = PlanRequest> {
    let after = select(vec![vec![], vec![1], vec![1, 2], vec![3], vec![2, 4]]);
    let times = (option::weighted(0.3, a_time()), option::weighted(0.3, a_time()));
    let rest = (-1_i64..2, times, any::<bool>());
    (after, option::of(1_u32..3), rest).prop_map(|(after, attempts, rest)| {
        let after = after.into_iter().map(Seq).collect();
        let (priority, (not_before, deadline), review) = rest;
        let priority = Priority::new(priority).unwrap();
        PlanRequest { after, attempts, priority, not_before, deadline, review }
    })
}

fn a_time() -> impl Strategy<Value = When> {
    prop_oneof![3 => a_ttl().prop_map(When::In), 1 => (0_i64..9_000).prop_map(|at| When::At(Timestamp(at)))]
}

pub(crate) fn caps() -> impl Strategy<Value = Set<Vec<Cap>>> {
    let cap = |by: Option<&str>, max| Cap { by: by.map(str::to_owned), max };
    let caps = vec![
        vec![cap(None, 1)],
        vec![cap(Some("step"), 1)],
        vec![cap(None, 2), cap(Some("step"), 1), cap(Some("status"), 2)],
    ];
    prop_oneof![3 => Just(Set::Keep), 1 => Just(Set::Reset), 2 => select(caps).prop_map(Set::To)]
}

fn a_wanted() -> impl Strategy<Value = Wanted> {
    let step = || Wanted([("step".to_owned(), json("1.0"))].into());
    select(vec![Wanted::default(), step()])
}

fn a_request() -> impl Strategy<Value = Seq> {
    (1_u64..4).prop_map(Seq)
}

fn a_path() -> impl Strategy<Value = StatePath> {
    select(["", "a", "a/b", "a/b/c", "n", "l"].map(path).to_vec())
}

fn a_ttl() -> impl Strategy<Value = Ttl> {
    select(["1ms", "2s", "9s", "2h"].map(ttl).to_vec())
}

fn an_edit() -> impl Strategy<Value = Edit> {
    let values = [
        "{}",
        "1",
        r#"{"b":{"c":1}}"#,
        r#"{"b":2}"#,
        r#"[ 1 , {"q": 1E2} ]"#,
        "null",
        r#"{"a":{"b":1},"n":5}"#,
    ];
    let patches = [
        "{}",
        r#"{"b":null}"#,
        r#"{"b":{"c":null,"d":1}}"#,
        r#"{"a":null}"#,
        r#"{"n":1,"l":[2]}"#,
        "3",
    ];
    let numbers = ["0", "1", "-0.5", "1e308", "100000000000000000000"];
    let value = (select(values.map(json).to_vec()), option::weighted(0.4, a_ttl()));
    prop_oneof![
        4 => value.prop_map(|(value, ttl)| Edit::Put { value, ttl }),
        2 => select(patches.map(json).to_vec()).prop_map(Edit::Merge),
        2 => select(numbers.map(json).to_vec()).prop_map(Edit::Add),
        2 => vec(select(values.map(json).to_vec()), 0..3).prop_map(Edit::Append),
        2 => Just(Edit::Remove),
    ]
}

fn an_agent() -> impl Strategy<Value = AgentName> {
    select(vec![agent("HostAgent"), agent("a"), agent("日本 ")])
}

fn a_profile() -> impl Strategy<Value = Item> {
    let profiles = [
        "{}",
        r#"{"type":"T","status":"PENDING"}"#,
        r#"{"status":"CONTINUE","x" : 1}"#,
        r#"{"x":null,"status":"WAIT"}"#,
        r#"{"status":"FAIL"}"#,
        r#"{"status":null}"#,
        r#"{"revision":1}"#,
    ];
    select(items(profiles))
}

pub(crate) fn agent_states() -> impl Strategy<Value = Set<AgentStates>> {
    let moves = || vec(select(vec!["CONTINUE", "FAIL", "WAIT"]), 0..3);
    let texts = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let wait = (moves(), moves()).prop_map(move |(from, to)| {
        let moves = Moves { from: texts(from), to: texts(to) };
        Set::To(AgentStates::from([("WAIT".to_owned(), moves)]))
    });
    prop_oneof![3 => Just(Set::Keep), 1 => Just(Set::Reset), 2 => wait]
}

pub(crate) fn profiles() -> impl Strategy<Value = Set<PromptProfiles>> {
    let steps = option::of(vec(select(vec!["1", "2.0", "-1E5"]), 1..3));
    let headings = Headings { state: Some("[é:]".to_owned()), ..Default::default() };
    let profile = (steps, option::of(Just(headings))).prop_map(|(steps, headings)| {
        let steps = steps.map(|steps| steps.into_iter().map(str::to_owned).collect());
        PromptProfile { steps, headings, ..Default::default() }
    });
    let named = profile
        .prop_map(|profile| Set::To(PromptProfiles::from([("p \"1\"".parse().unwrap(), profile)])));
    prop_oneof![3 => Just(Set::Keep), 1 => Just(Set::Reset), 2 => named]
}

fn test() -> impl Strategy<Value = Test> {
    let values = ["1.0", "{}", r#"{"b":2}"#, "[1,{\"q\":100}]"].map(json).to_vec();
    let version = option::of(Just(Version { session: ID, changed: Revision(99) }));
    prop_oneof![
        (a_path(), select(values)).prop_map(|(path, value)| Test::Equals(path, value)),
        (a_path(), any::<bool>()).prop_map(|(path, absent)| Test::Absent(path, absent)),
        (a_path(), version).prop_map(|(path, version)| Test::InVersion(path, version)),
        (log(), 0_usize..3).prop_map(|(log, count)| Test::Count(log, count)),
        (a_request(), any::<bool>()).prop_map(|(seq, claimable)| Test::Claimable(seq, claimable)),
        (0_u64..9).prop_map(|revision| Test::AtRevision(Revision(revision))),
    ]
}
