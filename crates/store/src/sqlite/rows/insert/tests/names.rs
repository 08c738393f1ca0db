//! Tests of claims: a name belongs to one session at a time.

use tempfile::TempDir;

use super::ends::ending;
use crate::tests::sqlite::{ANNA, BERT, open, run};
use crate::*;

const APPENDED: Outcome = Outcome::Appended;
const CONFLICT: Outcome = Outcome::Conflict { head: Revision(0) };

/// A run that claims a name which belongs to a session with this head.
fn claiming(run: Run, before: Option<(SessionId, u64)>) -> Run {
    let before = before.map(|(session, head)| (session, Revision(head)));
    Run { claim: Some(NameClaim { name: b"name".to_vec(), before }), ..run }
}

fn making(session: SessionId, before: Option<(SessionId, u64)>) -> Run {
    let revision = before.map_or(0, |(_, head)| head);
    claiming(run(session, revision, &["made"]), before)
}

#[test]
fn of_two_sessions_of_a_name_one_is_made() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let batch = [making(ANNA, None), making(BERT, None)];
    assert_eq!(store.append(&batch), [APPENDED, CONFLICT], "in one batch");
    assert_eq!(store.append(&[making(BERT, None)]), [CONFLICT], "in another");
    assert_eq!(store.sessions().len(), 1);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.append(&[making(BERT, None)]), [CONFLICT], "after a restart");
    let other = Run {
        claim: Some(NameClaim { name: b"other".to_vec(), before: None }),
        ..making(BERT, None)
    };
    assert_eq!(store.append(&[other]), [APPENDED]);
}

#[test]
fn a_name_goes_from_an_ended_session_to_the_next() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[making(ANNA, None)]);
    assert_eq!(store.append(&[making(BERT, Some((ANNA, 1)))]), [APPENDED], "as its claim expects");
    let deletion = claiming(ending(ANNA, 1, &[]), Some((ANNA, 1)));
    assert_eq!(store.append(&[deletion]), [Outcome::Conflict { head: Revision(1) }]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(
        store.append(&[making(SessionId(uuid::Uuid::from_u128(0xd)), Some((ANNA, 1)))]),
        [CONFLICT]
    );
    let deletion = claiming(ending(BERT, 2, &[]), Some((BERT, 2)));
    assert_eq!(store.append(&[deletion]), [APPENDED]);
    let third = SessionId(uuid::Uuid::from_u128(0xc));
    assert_eq!(store.append(&[making(third, None)]), [APPENDED], "its caller forgot the end");
}

#[test]
fn a_lost_row_leaves_the_name_to_the_last_session() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[making(ANNA, None)]);
    assert_eq!(store.append(&[making(BERT, Some((ANNA, 1)))]), [APPENDED]);
    drop(store);
    let database = rusqlite::Connection::open(dir.path().join("blackboard.db")).unwrap();
    let lost = "DELETE FROM name WHERE session = ?1";
    database.execute(lost, [BERT.0.as_bytes().as_slice()]).unwrap();
    drop(database);
    let store = open(dir.path());
    let deletion = claiming(ending(BERT, 2, &[]), Some((BERT, 2)));
    assert_eq!(store.append(&[deletion]), [APPENDED]);
}

#[test]
fn a_forgotten_session_leaves_its_name() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[making(ANNA, None)]);
    store.forget(&[ANNA]).unwrap();
    assert_eq!(store.append(&[making(BERT, None)]), [APPENDED]);
}

#[test]
fn an_adoption_claims_the_name() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[making(ANNA, None)]);
    store.stage(BERT).unwrap();
    let adopting = |before| Run { adopts: true, ..claiming(run(BERT, 4, &["adopted"]), before) };
    assert_eq!(store.append(&[adopting(None)]), [CONFLICT]);
    assert_eq!(store.append(&[adopting(Some((ANNA, 1)))]), [APPENDED]);
}
