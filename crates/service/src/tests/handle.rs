//! Tests of handles: whom they are given to, and when they end.

use std::sync::Arc;

use tempfile::TempDir;

use super::service::{name, request, start};
use crate::{Service, Unreachable};
use blackboard_auth::{Caller, NewToken, Scope, TokenLimits, Tokens};
use blackboard_board::{Revision, Timestamp};
use blackboard_clock::Clock;
use blackboard_store::{SqliteOptions, SqliteStore, Store};

/// The tokens of another store: a service knows none.
fn tokens(dir: &TempDir) -> Tokens {
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap());
    let limits = TokenLimits { rate: None, streams_max: 2 };
    Tokens::open(store, Clock::system(), limits).unwrap()
}

/// A caller that reaches the session `own`.
fn caller(tokens: &Tokens, expires_at: Option<Timestamp>) -> Caller {
    let (_, secret) = tokens
        .create(NewToken {
            name: "a".parse().unwrap(),
            scopes: [Scope::Read].into_iter().collect(),
            sessions: vec!["own".parse().unwrap()],
            agent: None,
            expires_at,
            anyway: true,
        })
        .unwrap();
    tokens.authenticate(Some(secret.reveal())).unwrap()
}

async fn written(service: &Service, session: &str) {
    service.receipt(request(session, "{}"), vec![]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_is_had_by_a_caller_that_reaches_its_session() {
    let (dir, of_tokens) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (service, tokens) = (start(dir.path()), tokens(&of_tokens));
    written(&service, "own").await;
    written(&service, "other").await;
    let caller = caller(&tokens, None);
    let own = service.session(&caller, &name("own")).await.unwrap();
    assert_eq!(own.published().await.unwrap().unwrap().board.revision(), Revision(1));
    assert_eq!((own.to_string(), own.extent().unwrap().unwrap().revision.0), ("own".to_owned(), 1));
    let hidden = service.session(&caller, &name("other")).await.unwrap_err();
    assert!(matches!(hidden, Unreachable::Hidden(session) if session == name("other")));
    tokens.revoke("a").unwrap();
    let over = service.session(&caller, &name("own")).await.unwrap_err();
    assert!(matches!(over, Unreachable::Over(_)), "{over}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_asks_for_the_rights_anew_at_each_wake() {
    let (dir, of_tokens) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (service, tokens) = (start(dir.path()), tokens(&of_tokens));
    let caller = caller(&tokens, None);
    let own = service.session(&caller, &name("own")).await.unwrap();
    assert!(own.published().await.unwrap().is_none(), "it may be waited for before it exists");
    let mut wait = own.wait().unwrap();
    written(&service, "own").await;
    assert!(wait.changed().await.unwrap());
    assert_eq!(wait.extent().revision, Revision(1));
    tokens.revoke("a").unwrap();
    written(&service, "own").await;
    let over = wait.changed().await.unwrap_err();
    assert!(matches!(over, Unreachable::Over(_)), "{over}");
}
