//! Tests of creating, finding and revoking tokens in a real store.

use tempfile::TempDir;

use super::*;
use crate::{Scope, Scopes};
use blackboard_store::{SqliteOptions, SqliteStore};

const LIMITS: TokenLimits = TokenLimits { rate: None, streams_max: 2 };

fn store(dir: &TempDir) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap())
}

fn at(store: &Arc<dyn Store>, now: i64) -> Tokens {
    Tokens::open(Arc::clone(store), Clock::new(move || Timestamp(now)), LIMITS).unwrap()
}

fn new(name: &str, expires_at: Option<i64>) -> NewToken {
    NewToken {
        name: name.parse().unwrap(),
        scopes: [Scope::Read].into_iter().collect(),
        sessions: vec!["demo-*".parse().unwrap()],
        agent: None,
        expires_at: expires_at.map(Timestamp),
        anyway: true,
    }
}

fn refused(tokens: &Tokens, presented: Option<&str>) -> Unauthorized {
    tokens.authenticate(presented).unwrap_err()
}

#[test]
fn after_the_first_token_one_is_always_needed() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    let tokens = at(&store, 5);
    let open = tokens.authenticate(None).unwrap();
    assert!(open.reaches_all() && open.may(Scope::Admin));
    let (Created { token, .. }, secret) = tokens.create(new("a", None)).unwrap();
    assert!(open.ended().unwrap().is_cancelled(), "what went on without a token ends");
    assert_eq!(refused(&tokens, None), Unauthorized::Missing);
    assert_eq!(refused(&tokens, Some("bb_")), Unauthorized::Unknown);
    let other = Secret::random().unwrap();
    assert_eq!(refused(&tokens, Some(other.reveal())), Unauthorized::Unknown);
    let caller = tokens.authenticate(Some(secret.reveal())).unwrap();
    assert_eq!(caller.grant().unwrap().token(), &token);
    tokens.revoke("a").unwrap();
    assert!(caller.ended().unwrap().is_cancelled());
    for tokens in [&tokens, &at(&store, 6)] {
        assert_eq!(refused(tokens, Some(secret.reveal())), Unauthorized::Revoked);
        assert_eq!(refused(tokens, None), Unauthorized::Missing);
    }
    assert!(matches!(tokens.revoke("a"), Err(AuthError::Unknown(_))));
}

#[test]
fn a_token_opens_until_its_time_is_over() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    let (_, secret) = at(&store, 5).create(new("a", Some(10))).unwrap();
    assert!(at(&store, 9).authenticate(Some(secret.reveal())).is_ok());
    assert_eq!(refused(&at(&store, 10), Some(secret.reveal())), Unauthorized::Expired);
}

#[test]
fn a_name_is_free_again_once_its_token_ended() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    let (token, secret) = at(&store, 5).create(new("a", Some(10))).unwrap();
    let tokens = at(&store, 9);
    assert!(matches!(tokens.create(new("a", None)), Err(AuthError::NameTaken { .. })));
    let again = tokens.adopt(new("b", None), &secret);
    assert!(matches!(again, Err(AuthError::Known { .. })));
    let tokens = at(&store, 10);
    tokens.create(new("a", None)).unwrap();
    assert_eq!(tokens.list().len(), 2);
    assert!(matches!(tokens.revoke(&token.token.id.to_string()), Err(AuthError::Unknown(_))));
}

#[test]
fn a_token_that_opens_nothing_is_not_made() {
    let dir = TempDir::new().unwrap();
    let tokens = at(&store(&dir), 5);
    let none = NewToken { scopes: Scopes::default(), ..new("a", None) };
    let nowhere = NewToken { sessions: Vec::new(), ..new("a", None) };
    for nothing in [none, nowhere] {
        assert!(matches!(tokens.create(nothing), Err(AuthError::Nothing)));
    }
    assert!(!tokens.are_required());
}

#[test]
fn a_damaged_token_opens_nothing_and_leaves_the_server_closed() {
    let dir = TempDir::new().unwrap();
    let secret = {
        let store = store(&dir);
        let (_, secret) = at(&store, 5).create(new("a", None)).unwrap();
        store.close().unwrap();
        secret
    };
    let database = rusqlite::Connection::open(dir.path().join("blackboard.db")).unwrap();
    let change =
        "UPDATE token SET body = CAST(replace(CAST(body AS TEXT), 'demo', 'Demo') AS BLOB)";
    assert_eq!(database.execute(change, []).unwrap(), 1);
    drop(database);
    let store = store(&dir);
    let tokens = at(&store, 5);
    assert_eq!(refused(&tokens, Some(secret.reveal())), Unauthorized::Unknown);
    assert_eq!(refused(&tokens, None), Unauthorized::Missing);
}

#[test]
fn no_file_and_no_answer_has_the_token() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    let (token, secret) = at(&store, 5).create(new("a", None)).unwrap();
    store.close().unwrap();
    let shown = format!("{token:?} {secret:?}");
    let stored = std::fs::read(dir.path().join("blackboard.db")).unwrap();
    let code = &secret.reveal().as_bytes()[3..];
    assert!(!shown.as_bytes().windows(code.len()).any(|part| part == code));
    assert!(!stored.windows(code.len()).any(|part| part == code));
}

#[test]
fn a_first_token_needs_admin_unless_told_otherwise() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    let tokens = at(&store, 5);
    let limited = |name| NewToken { anyway: false, ..new(name, None) };
    assert!(matches!(tokens.create(limited("a")), Err(AuthError::FirstWithoutAdmin)));
    assert!(!tokens.are_required(), "a refused token locks nobody out");
    let admin = NewToken { scopes: [Scope::Admin].into_iter().collect(), ..limited("admin") };
    assert!(tokens.create(admin).unwrap().0.first);
    assert!(!tokens.create(limited("a")).unwrap().0.first);
}

#[test]
fn disabled_tokens_leave_an_open_server() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    let tokens = at(&store, 5);
    let (_, secret) = tokens.create(new("a", None)).unwrap();
    let caller = tokens.authenticate(Some(secret.reveal())).unwrap();
    tokens.create(new("b", Some(6))).unwrap();
    tokens.revoke("b").unwrap();
    assert_eq!(tokens.disable().unwrap(), 2);
    assert!(caller.ended().unwrap().is_cancelled(), "requests with a deleted token end");
    for tokens in [&tokens, &at(&store, 6)] {
        assert!(!tokens.are_required() && tokens.list().is_empty());
        assert!(tokens.authenticate(None).unwrap().may(Scope::Admin));
    }
    let open = tokens.authenticate(None).unwrap();
    tokens.create(new("a", None)).unwrap();
    assert!(open.ended().unwrap().is_cancelled());
}

#[test]
fn a_server_that_needs_tokens_keeps_them() {
    let dir = TempDir::new().unwrap();
    let tokens = at(&store(&dir), 5);
    tokens.create(new("a", None)).unwrap();
    tokens.keep(KeptBecause::Exposed("192.0.2.1:8733".parse().unwrap()));
    let refused_by = tokens.disable().unwrap_err().to_string();
    assert!(refused_by.contains("other machines can reach 192.0.2.1:8733"), "{refused_by}");
    assert_eq!(refused(&tokens, None), Unauthorized::Missing);
}
