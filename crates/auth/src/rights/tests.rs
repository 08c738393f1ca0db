//! Tests of what callers may do and see.

use std::borrow::Cow;
use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::{Grant, Token, TokenId, TokenLimits};
use blackboard_board::{
    AgentCommand, Budget, Change, Commit, History, Item, LogChange, LogCommand, MaxItemsEach,
    Nonce, Restored, Revision, Seq, SessionChange, SessionCommand, Timestamp, Transaction, Ttl,
    Which,
};

fn bearer(agent: Option<&str>, scopes: &[Scope], sessions: &str) -> Caller {
    let token = Token {
        id: TokenId(Uuid::nil()),
        name: "t".parse().unwrap(),
        scopes: scopes.iter().copied().collect(),
        sessions: vec![sessions.parse().unwrap()],
        agent: agent.map(|agent| agent.parse().unwrap()),
        created_at: Timestamp(0),
        expires_at: None,
        revoked_at: None,
    };
    let limits = TokenLimits { rate: None, streams_max: 1 };
    Caller::with(Arc::new(Grant::new(token, limits)))
}

fn memory(agent: &str) -> LogName {
    LogName::Memory(agent.parse().unwrap())
}

fn appended(log: LogName) -> Change {
    let items = vec![Item::from_json("{}").unwrap()];
    Change::Log(log, LogChange::Appended { first: Seq(1), items })
}

fn commit(changes: Vec<Change>) -> Commit {
    let agent = Some("B".parse().unwrap());
    let (revision, at) = (Revision(7), Timestamp(1));
    Commit { revision, at, agent, trace: None, nonce: Nonce(1), kept: None, changes }
}

#[test]
fn an_agents_token_sees_other_memories_by_scope_only() {
    let own = bearer(Some("A"), &[Scope::Read], "*");
    assert!(own.sees(&memory("A")) && own.sees(&LogName::Requests));
    assert!(!own.sees(&memory("B")) && own.sees_all_memories().is_err());
    for caller in [
        bearer(Some("A"), &[Scope::Read, Scope::MemoryRead], "*"),
        bearer(Some("A"), &[Scope::Admin], "*"),
        bearer(None, &[Scope::Read], "*"),
        Caller::anyone(Arc::default()),
    ] {
        assert!(caller.sees(&memory("B")) && caller.sees_all_memories().is_ok(), "{caller}");
    }
}

#[test]
fn an_agents_token_writes_no_memory_but_its_own() {
    let scopes = [Scope::Read, Scope::Write, Scope::MemoryRead];
    let own = bearer(Some("A"), &scopes, "*");
    let append = |agent| Command::Log(memory(agent), LogCommand::Append { items: Vec::new() });
    let remove = |agent: &str| Command::Agent(agent.parse().unwrap(), AgentCommand::Remove);
    let within = |command| {
        Command::Transact(Box::new(Transaction { then: vec![command], ..Transaction::default() }))
    };
    let clear = Command::Log(memory("B"), LogCommand::Remove { which: Which::All });
    for allowed in [append("A"), remove("A"), within(append("A"))] {
        assert_eq!(own.permits(&allowed), Ok(()), "{allowed:?}");
    }
    let all = [Command::RemoveAgents, Command::Session(SessionCommand::Delete)];
    let others =
        [append("B"), remove("B"), within(append("B")), within(within(remove("B"))), clear];
    for refused in all.into_iter().chain(others) {
        let forbidden = own.permits(&refused);
        assert!(matches!(forbidden, Err(Forbidden::ForeignWrite { .. })), "{refused:?}");
        assert_eq!(bearer(None, &scopes, "*").permits(&refused), Ok(()), "{refused:?}");
    }
}

#[test]
fn a_test_is_a_read() {
    let count = |agent| {
        Command::Transact(Box::new(Transaction {
            tests: vec![Test::Count(memory(agent), 1)],
            ..Transaction::default()
        }))
    };
    let writer = bearer(None, &[Scope::Write], "*");
    assert_eq!(writer.permits(&count("A")), Err(Forbidden::Scope(Scope::Read)));
    let own = bearer(Some("A"), &[Scope::Read, Scope::Write], "*");
    assert_eq!(own.permits(&count("A")), Ok(()));
    assert!(matches!(own.permits(&count("B")), Err(Forbidden::ForeignMemory { .. })));
}

#[test]
fn settings_that_concern_all_agents_need_more_rights() {
    let with = |settings| {
        let (labels, qa_pairs) = (Set::Keep, Vec::new());
        Command::Session(SessionCommand::Put { settings: Set::To(settings), labels, qa_pairs })
    };
    let (one, max) = (std::num::NonZeroUsize::MIN, Budget::of(1.0).unwrap());
    let ttl = with(SettingsPatch { ttl: Set::To(Ttl::MINUTE), ..SettingsPatch::default() });
    let no_ttl = with(SettingsPatch { ttl: Set::Reset, ..SettingsPatch::default() });
    let all =
        with(SettingsPatch { max_items: Set::To(MaxItems::All(one)), ..SettingsPatch::default() });
    let each = |each| {
        with(SettingsPatch { max_items: Set::To(MaxItems::Each(each)), ..SettingsPatch::default() })
    };
    let memory = each(MaxItemsEach { memory: Some(one), ..MaxItemsEach::default() });
    let requests = each(MaxItemsEach { requests: Some(one), ..MaxItemsEach::default() });
    let history =
        with(SettingsPatch { history: Set::To(History::Revisions(1)), ..SettingsPatch::default() });
    let budget = with(SettingsPatch { cost_max: Set::To(max), ..SettingsPatch::default() });
    let no_budget = with(SettingsPatch { cost_max: Set::Reset, ..SettingsPatch::default() });
    let scopes = [Scope::Read, Scope::Write];
    let (own, unbound) = (bearer(Some("A"), &scopes, "*"), bearer(None, &scopes, "*"));
    for command in [&ttl, &no_ttl, &all, &memory, &budget, &no_budget] {
        assert!(matches!(own.permits(command), Err(Forbidden::Setting { .. })), "{command:?}");
        assert_eq!(unbound.permits(command), Ok(()), "{command:?}");
    }
    assert_eq!(own.permits(&requests), Ok(()));
    for caller in [&own, &unbound] {
        assert_eq!(caller.permits(&history), Err(Forbidden::Scope(Scope::Admin)));
    }
    let admin = bearer(Some("A"), &[Scope::Admin], "*");
    for command in [ttl, no_ttl, all, memory, requests, history, budget, no_budget] {
        assert_eq!(admin.permits(&command), Ok(()), "{command:?}");
    }
}

#[test]
fn what_another_agent_remembers_is_an_empty_commit() {
    let own = bearer(Some("A"), &[Scope::Read], "*");
    let foreign = commit(vec![appended(memory("B"))]);
    let seen = own.visible(&foreign);
    assert_eq!((seen.changes.len(), seen.kind(), seen.revision), (0, "unchanged", Revision(7)));
    let both =
        commit(vec![appended(memory("B")), appended(memory("A")), appended(LogName::Requests)]);
    assert_eq!(own.visible(&both).changes, both.changes[1..]);
    assert!(matches!(own.visible(&commit(vec![appended(memory("A"))])), Cow::Borrowed(_)));
    let logs = vec![(memory("A"), Default::default()), (memory("B"), Default::default())];
    let restored = Restored { logs, ..Restored::default() };
    let restore = commit(vec![Change::Session(SessionChange::Restored(restored.into()))]);
    let Change::Session(SessionChange::Restored(seen)) = &own.visible(&restore).changes[0] else {
        panic!("no restore")
    };
    assert_eq!(seen.logs.len(), 1);
    assert_eq!(seen.logs[0].0, memory("A"));
}

#[test]
fn where_a_fork_came_from_is_told_to_those_who_reach_it() {
    let (name, fork_of) = ("demo-2".parse().unwrap(), Some("secret".parse().unwrap()));
    let adopted =
        commit(vec![Change::Session(SessionChange::Adopted { name, after: Revision(0), fork_of })]);
    let limited = bearer(None, &[Scope::Read], "demo-*");
    assert!(matches!(
        &limited.visible(&adopted).changes[0],
        Change::Session(SessionChange::Adopted { fork_of: None, .. })
    ));
    let all = bearer(None, &[Scope::Read], "*");
    assert!(matches!(all.visible(&adopted), Cow::Borrowed(_)));
}

#[test]
fn a_token_reaches_the_sessions_of_its_patterns() {
    let caller = bearer(None, &[Scope::Read], "demo-*");
    assert!(
        caller.reaches(&"demo-1".parse().unwrap()) && !caller.reaches(&"other".parse().unwrap())
    );
    assert!(!caller.reaches_all() && bearer(None, &[Scope::Read], "*").reaches_all());
    assert!(
        !Caller::nobody().reaches(&"demo-1".parse().unwrap()) && !Caller::nobody().may(Scope::Read)
    );
}
