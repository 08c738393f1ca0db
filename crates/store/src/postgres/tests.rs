//! The store against a PostgreSQL service: `BLACKBOARD_TEST_POSTGRES` names one, as `tests/postgres.py` does.

use uuid::Uuid;

use super::append::Bound;
use super::*;
use crate::{BlobStore as _, NameClaim, PostgresError, SessionRow};
use blackboard_board::stored::Body;
use blackboard_board::{Digest, Frame, Seal};

mod texts;

fn url() -> PostgresUrl {
    address().parse().expect("an address")
}

fn address() -> String {
    let service = std::env::var("BLACKBOARD_TEST_POSTGRES").expect("a service");
    let schema = format!("store_{}", Uuid::new_v4().simple());
    format!("{service}?options=-csearch_path%3D{schema}")
}

fn row(name: &str, blobs: Vec<Digest>) -> Box<SessionRow> {
    Box::new(SessionRow {
        name: name.as_bytes().to_vec(),
        exists: true,
        updated_at: Timestamp(1),
        next_due: None,
        labels: Vec::new(),
        asks: false,
        requests: false,
        is_over_budget: false,
        is_limited: false,
        image_bytes: 0,
        has_blobs: false,
        summary: Vec::new(),
        blobs,
        before: None,
    })
}

/// A run of one commit; the first one of a session claims its name.
fn run(name: &str, session: SessionId, expected: u64, blobs: Vec<Digest>) -> Run {
    let revision = Revision(expected + 1);
    let claim = NameClaim { name: name.as_bytes().to_vec(), before: None };
    Run {
        session,
        expected: Revision(expected),
        ends: None,
        frames: vec![
            Frame::encode(session, revision, &Body::plain(name.as_bytes())).expect("a frame"),
        ],
        claim: (expected == 0).then_some(claim),
        grows: true,
        adopts: false,
        group: None,
        row: Some(row(name, blobs)),
    }
}

fn session() -> SessionId {
    SessionId(Uuid::now_v7())
}

const CONFLICT: Outcome = Outcome::Conflict { head: Revision(0) };

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn an_append_stores_its_commits_on_the_expected_head_alone() {
    let store = PostgresStore::open(&url()).unwrap();
    let (one, two) = (session(), session());
    let batch = [run("a", one, 0, vec![]), run("b", two, 0, vec![])];
    assert_eq!(store.append(&batch), [Outcome::Appended, Outcome::Appended]);
    // The name is taken, the head is another, and the third stands.
    let batch =
        [run("a", session(), 0, vec![]), run("a", one, 3, vec![]), run("b", two, 1, vec![])];
    assert_eq!(store.append(&batch), [CONFLICT, CONFLICT, Outcome::Appended]);
    let max = PageMax { commits: 9, bytes: 1 << 20 };
    assert_eq!(store.commits(two, Revision(0), max).unwrap().len(), 2);
    let heads =
        store.heads(&[(b"b".to_vec(), Revision(1)), (b"none".to_vec(), Revision(0))]).unwrap();
    assert_eq!(heads[0].map(|head| (head.session, head.revision)), Some((two, Revision(2))));
    assert_eq!(heads[1], None);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_group_is_stored_all_or_none() {
    let store = PostgresStore::open(&url()).unwrap();
    let (one, two) = (session(), session());
    let grouped = |run: Run| Run { group: Some(0), ..run };
    let batch = [grouped(run("a", one, 0, vec![])), grouped(run("b", two, 7, vec![]))];
    assert_eq!(store.append(&batch), [CONFLICT, CONFLICT]);
    assert_eq!(store.heads(&[(b"a".to_vec(), Revision(0))]).unwrap(), [None]);
    let batch = [grouped(run("a", one, 0, vec![])), grouped(run("b", two, 0, vec![]))];
    assert_eq!(store.append(&batch), [Outcome::Appended, Outcome::Appended]);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn an_append_that_names_a_removed_blob_is_refused() {
    let store = PostgresStore::open(&url()).unwrap();
    let (session, bytes) = (session(), b"an image");
    let digest = Digest::of(bytes);
    let first = run("a", session, 0, vec![digest]);
    assert_eq!(store.append(std::slice::from_ref(&first)), [Outcome::BlobsMissing]);
    store.put_blob(session, digest, bytes).unwrap();
    assert_eq!(store.append(&[first]), [Outcome::Appended]);
    assert_eq!(store.blob(session, digest).unwrap(), bytes);
    // One that another server put may be on its way into a commit.
    let other = PostgresStore::open(store.connections.url()).unwrap();
    assert!(!other.remove_blob(session, digest, &|| true).unwrap());
    assert!(store.remove_blob(session, digest, &|| true).unwrap());
    assert_eq!(store.append(&[run("a", session, 1, vec![digest])]), [Outcome::BlobsMissing]);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn what_an_interrupted_upload_left_goes_after_a_day() {
    let store = PostgresStore::open(&url()).unwrap();
    let (session, bytes) = (session(), b"an image");
    store.put_blob(session, Digest::of(bytes), bytes).unwrap();
    let chunks = || {
        let count = store.connections.read(async |client| {
            let sql = "SELECT count(*) FROM blob_chunk";
            let row = client.query_one(sql, &[]).await.map_err(error::failed)?;
            Ok(row.get::<_, i64>(0))
        });
        count.unwrap()
    };
    let left = |content: Uuid| {
        let put = store.connections.read(async |client| {
            let sql = "INSERT INTO blob_chunk VALUES ($1, $2, 0, '')";
            client.execute(sql, &[&session.0, &content]).await.map_err(error::failed)
        });
        put.unwrap();
    };
    left(Uuid::now_v7());
    left(Uuid::from_u128(1 << 80));
    assert_eq!(chunks(), 3);
    store.sweep().unwrap();
    assert_eq!(chunks(), 2, "a young one is on its way");
    assert_eq!(store.blob(session, Digest::of(bytes)).unwrap(), bytes);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn logouts_beyond_a_tokens_bound_end_its_oldest_logins() {
    let store = PostgresStore::open(&url()).unwrap();
    let now = store.connections.read(async |client| {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        Ok(client.query_one(sql, &[]).await.map_err(error::failed)?.get::<_, i64>(0))
    });
    let now = now.unwrap();
    let (token, other) = (Uuid::now_v7(), Uuid::now_v7());
    let row = |token, number: u8, made_at| {
        let login = Some(Digest::of(&[number]));
        LogoutRow { token, login, made_at: Timestamp(made_at) }
    };
    store.log_out(&row(other, 0, now - 9), 3).unwrap();
    // Their order is not that of the log-ins.
    for (number, made_at) in [(1, 50), (2, 20), (3, 40), (3, 40), (4, 30), (5, 10)] {
        store.log_out(&row(token, number, now - made_at), 3).unwrap();
    }
    let all: Vec<_> = store.logouts(0).unwrap().into_iter().map(|(_, row)| row).collect();
    let until = LogoutRow { token, login: None, made_at: Timestamp(now - 40) };
    let kept = [row(token, 2, now - 20), row(token, 4, now - 30), row(token, 5, now - 10)];
    assert_eq!(all.len(), 5, "{all:?}");
    for row in kept.iter().chain([&until, &row(other, 0, now - 9)]) {
        assert!(all.contains(row), "{row:?} of {all:?}");
    }
    let last = store.logouts(0).unwrap().last().unwrap().0;
    assert_eq!(store.logouts(last).unwrap(), []);
    assert_eq!(store.logouts(last + 1).unwrap().len(), 5, "after a failover all are read");
    store.log_out(&row(other, 9, now - (2 << 30)), 3).unwrap();
    assert_eq!(store.logouts(last).unwrap().len(), 1);
    store.sweep().unwrap();
    assert_eq!(store.logouts(0).unwrap().len(), 5);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn an_append_finds_its_rows_by_primary_keys() {
    let store = PostgresStore::open(&url()).unwrap();
    let plan = store.connections.wait(async {
        let client = store.connections.writer().await?;
        // In small tables a scan may be cheaper.
        client.batch_execute("SET enable_seqscan = off").await.map_err(error::failed)?;
        let run = run("a", session(), 1, vec![]);
        let follow = Bound::of(&run).statement().text;
        client.batch_execute(&format!("PREPARE follow AS {follow}")).await.map_err(error::failed)?;
        let explain = "EXPLAIN EXECUTE follow('00000000-0000-0000-0000-000000000000', 1, '\\x00', 2, 9, true, NULL, '{}', \
            false, false, false, false, '', 0, false, '{2}', '{\"\\\\x00\"}', 1, '{\"\\\\x00\"}')";
        let rows = client.query(explain, &[]).await.map_err(error::failed)?;
        Ok(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n"))
    });
    let plan = plan.unwrap();
    assert!(plan.contains("Index Scan using session_pkey"), "{plan}");
    assert!(plan.contains("blob_pkey"), "{plan}");
    // The seal of the last commit is in the session's row.
    assert!(!plan.contains("history_commit_pkey"), "{plan}");
    assert!(!plan.contains("Seq Scan"), "{plan}");
}

/// The expected head is a commit and not only its revision.
#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn an_append_on_a_commit_that_was_lost_is_a_conflict() {
    let store = PostgresStore::open(&url()).unwrap();
    let (one, other) = (session(), Some(Seal([0; 11])));
    let on = |run: Run, before: Option<Seal>| {
        let row = run.row.map(|row| Box::new(SessionRow { before, ..*row }));
        Run { row, ..run }
    };
    let first = run("a", one, 0, vec![]);
    let seal = Frame::seal(&first.frames[0]);
    assert_eq!(store.append(&[first]), [Outcome::Appended]);
    assert_eq!(store.append(&[on(run("a", one, 1, vec![]), other)]), [CONFLICT]);
    let heads = store.heads(&[(b"a".to_vec(), Revision(1))]).unwrap();
    assert_eq!(heads[0].map(|head| (head.revision, head.asked)), Some((Revision(1), seal)));
    assert_eq!(store.append(&[on(run("a", one, 1, vec![]), seal)]), [Outcome::Appended]);
    let heads = store.heads(&[(b"a".to_vec(), Revision(3))]).unwrap();
    assert_eq!(heads[0].map(|head| (head.revision, head.asked)), Some((Revision(2), None)));
    // A base has no seal, so that its revision alone is compared.
    let head = |asked: u64| {
        let heads = store.heads(&[(b"a".to_vec(), Revision(asked))]).unwrap();
        heads[0].map(|head| (head.revision.0, head.asked.is_some())).unwrap()
    };
    assert_eq!(head(2), (2, true));
    store.put_base(one, Revision(2), 0, &mut std::iter::once(b"base".to_vec())).unwrap();
    assert_eq!(head(2), (2, true));
    assert_eq!(store.set_base(one, Revision(2)), Outcome::Appended);
    assert_eq!([head(1), head(2)], [(2, false), (2, false)]);
    assert_eq!(store.append(&[on(run("a", one, 2, vec![]), other)]), [Outcome::Appended]);
    assert_eq!(head(3), (3, true));
    // The next session of the name expects the end of the one before.
    let next = run("a", session(), 0, vec![]);
    let claim = NameClaim { name: b"a".to_vec(), before: Some((one, Revision(1))) };
    assert_eq!(store.append(&[on(Run { claim: Some(claim), ..next }, seal)]), [CONFLICT]);
}

/// A failover may have lost its deletion, while this server still deletes what was left of it.
#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_session_that_exists_is_not_forgotten() {
    let store = PostgresStore::open(&url()).unwrap();
    let (one, digest) = (session(), Digest::of(b"blob"));
    store.put_blob(one, digest, b"blob").unwrap();
    assert_eq!(store.append(&[run("a", one, 0, vec![digest])]), [Outcome::Appended]);
    store.forget(&[one]).unwrap();
    store.remove_blobs(&[one]).unwrap();
    let heads = store.heads(&[(b"a".to_vec(), Revision(0))]).unwrap();
    assert_eq!(heads[0].map(|head| head.session), Some(one));
    assert_eq!(store.blob(one, digest).unwrap(), b"blob");
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_new_epoch_is_drawn_once_and_for_all_servers() {
    let url = url();
    let (store, other) = (PostgresStore::open(&url).unwrap(), PostgresStore::open(&url).unwrap());
    let before = store.epoch();
    store.draw_epoch(before).unwrap();
    assert_ne!(store.epoch(), before);
    // The head check brings it along.
    other.heads(&[(b"none".to_vec(), Revision(0))]).unwrap();
    assert_eq!(other.epoch(), store.epoch());
    other.draw_epoch(before).unwrap();
    assert_eq!(other.epoch(), store.epoch());
}

/// A failover may take the counter of changes back, and another change then brings it to the same number.
#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn other_tokens_have_another_version() {
    let store = PostgresStore::open(&url()).unwrap();
    let put = |body: &[u8]| store.put_token(Uuid::new_v4(), Some(body)).unwrap();
    put(b"lost");
    let version = store.tokens_version().unwrap();
    let back = "DELETE FROM token; UPDATE meta SET tokens = tokens - 1";
    let taken_back = store.connections.wait(async {
        let client = store.connections.writer().await?;
        client.batch_execute(back).await.map_err(error::failed)
    });
    taken_back.unwrap();
    put(b"other");
    assert_ne!(store.tokens_version().unwrap(), version);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn servers_one_version_apart_share_a_schema_and_no_others() {
    let (url, session) = (url(), session());
    let steps = |count: usize| {
        let more = ["ALTER TABLE session ADD COLUMN note text", "CREATE TABLE note (session uuid)"];
        schema::STEPS.iter().copied().chain(more).take(count).collect::<Vec<_>>()
    };
    let version = schema::STEPS.len();
    let now = PostgresStore::open(&url).unwrap();
    let next = PostgresStore::open_with(&url, &steps(version + 1)).unwrap();
    assert_eq!(next.epoch(), now.epoch());
    assert_eq!(now.append(&[run("s", session, 0, Vec::new())]), [Outcome::Appended]);
    assert_eq!(next.append(&[run("s", session, 1, Vec::new())]), [Outcome::Appended]);
    let again = PostgresStore::open(&url).unwrap();
    assert_eq!(again.append(&[run("s", session, 2, Vec::new())]), [Outcome::Appended]);
    let last = PostgresStore::open_with(&url, &steps(version + 2)).unwrap();
    assert_eq!(last.append(&[run("s", session, 3, Vec::new())]), [Outcome::Appended]);
    let refused = |steps: &[&str], found: usize| {
        let refused = PostgresStore::open_with(&url, steps).unwrap_err();
        let is_told = |told: i32| usize::try_from(told) == Ok(found);
        let is_schema = matches!(refused, StoreError::Postgres(PostgresError::Schema { found, .. }) if is_told(found));
        assert!(is_schema, "{refused}");
    };
    refused(schema::STEPS, version + 2);
    let set = last.connections.wait(async {
        let client = last.connections.writer().await?;
        client.execute("UPDATE meta SET format = 1", &[]).await.map_err(error::failed)
    });
    set.unwrap();
    refused(&steps(version + 2), 1);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_schema_from_before_the_first_release_is_refused() {
    let url = url();
    let store = PostgresStore::open(&url).unwrap();
    let earlier = "ALTER TABLE meta RENAME COLUMN format TO version";
    let made = store.connections.wait(async {
        let client = store.connections.writer().await?;
        client.batch_execute(earlier).await.map_err(error::failed)
    });
    made.unwrap();
    let refused = PostgresStore::open(&url).unwrap_err();
    let is_named = matches!(refused, StoreError::Postgres(PostgresError::BeforeRelease));
    assert!(is_named, "{refused}");
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn each_connection_waits_for_the_sync() {
    let service = std::env::var("BLACKBOARD_TEST_POSTGRES").expect("a service");
    let url: PostgresUrl =
        format!("{service}?options=-csynchronous_commit%3Doff").parse().expect("an address");
    let connections = Connections::to(&url).unwrap();
    let level = connections.wait(async {
        let client = connections.first().await?;
        let row = client.query_one("SHOW synchronous_commit", &[]).await.map_err(error::failed)?;
        Ok(row.get::<_, String>(0))
    });
    assert_eq!(level.unwrap(), "on");
}

/// Runs statements in the store's schema.
fn execute(store: &PostgresStore, sql: &str) {
    let done = store
        .connections
        .read(async |client| client.batch_execute(sql).await.map_err(error::failed));
    done.unwrap();
}

/// The text that a query of one value returns.
fn text(store: &PostgresStore, sql: &str) -> String {
    let found = store.connections.read(async |client| {
        let row = client.query_one(sql, &[]).await.map_err(error::failed)?;
        Ok(row.get::<_, String>(0))
    });
    found.unwrap()
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn an_append_is_durable_whatever_its_connection_is_set_to() {
    let store = PostgresStore::open(&url()).unwrap();
    execute(
        &store,
        "CREATE TABLE seen (level text); \
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$; \
         CREATE TRIGGER see AFTER INSERT ON history_commit FOR EACH ROW EXECUTE FUNCTION see()",
    );
    let forget = || {
        let set = store.connections.wait(async {
            let client = store.connections.writer().await?;
            client.batch_execute("SET synchronous_commit = off").await.map_err(error::failed)
        });
        set.unwrap();
    };
    let grouped = |run: Run| Run { group: Some(0), ..run };
    let (one, two, three) = (session(), session(), session());
    forget();
    store.append(&[run("a", one, 0, vec![])]);
    forget();
    store.append(&[grouped(run("b", two, 0, vec![])), grouped(run("c", three, 0, vec![]))]);
    forget();
    store.exclusively(&[b"a".to_vec()], &mut || vec![run("a", one, 1, vec![])]);
    let levels = store.connections.read(async |client| {
        let rows = client.query("SELECT level FROM seen", &[]).await.map_err(error::failed)?;
        Ok(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>())
    });
    assert_eq!(levels.unwrap(), ["on"; 4]);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_row_that_the_database_rejects_fails_alone() {
    let store = PostgresStore::open(&url()).unwrap();
    execute(&store, "ALTER TABLE session ADD CHECK (name IS DISTINCT FROM 'bad'::bytea)");
    let bad = || run("bad", session(), 0, vec![]);
    let (one, two, three) = (session(), session(), session());
    let batch = [run("a", one, 0, vec![]), bad(), run("c", two, 0, vec![])];
    let outcomes = store.append(&batch);
    assert_eq!(outcomes, [Outcome::Appended, append::REJECTED, Outcome::Appended]);
    assert_eq!(store.append(&[bad()]), [append::REJECTED]);
    let grouped = |run: Run| Run { group: Some(0), ..run };
    let batch = [grouped(run("d", three, 0, vec![])), grouped(bad()), run("a", one, 1, vec![])];
    let outcomes = store.append(&batch);
    assert_eq!(outcomes, [append::REJECTED, append::REJECTED, Outcome::Appended]);
    let names = [b"a".to_vec(), b"bad".to_vec(), b"c".to_vec()];
    let outcomes = store.exclusively(&names, &mut || {
        let others = [grouped(run("d", three, 0, vec![])), run("c", two, 1, vec![])];
        [run("a", one, 2, vec![]), grouped(bad())].into_iter().chain(others).collect()
    });
    let rejected = append::REJECTED;
    assert_eq!(outcomes, [Outcome::Appended, rejected, rejected, Outcome::Appended]);
    let asked = [b"a", b"c", b"d"].map(|name| (name.to_vec(), Revision(0)));
    let heads = store.heads(&asked).unwrap();
    let heads: Vec<_> = heads.iter().map(|head| head.map(|head| head.revision.0)).collect();
    assert_eq!(heads, [Some(3), Some(2), None]);
    // A label of an older store's archive; no list can ask for it.
    let mut labelled = run("e", session(), 0, vec![]);
    let row = labelled.row.as_mut().unwrap();
    row.labels = vec![("a".to_owned(), "\0".to_owned()), ("b".to_owned(), "1".to_owned())];
    assert_eq!(store.append(&[labelled]), [Outcome::Appended]);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn each_sqlstate_is_reported_as_what_it_is() {
    use PostgresFailure as Of;
    let store = PostgresStore::open(&url()).unwrap();
    execute(
        &store,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION USING ERRCODE = convert_from(NEW.name, 'UTF8'); END $$; \
         CREATE TRIGGER fail BEFORE INSERT ON session FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    for (code, outcome) in [
        ("53100", Outcome::Full),
        ("53200", Outcome::Failed(Of::Resources)),
        ("53400", Outcome::Failed(Of::Resources)),
        ("40001", Outcome::Failed(Of::Serialization)),
        ("40P01", Outcome::Failed(Of::Deadlock)),
        ("55P03", Outcome::Failed(Of::Locked)),
        ("57014", Outcome::Failed(Of::Cancelled)),
        ("22021", Outcome::Failed(Of::Row)),
        ("23514", Outcome::Failed(Of::Row)),
        ("54000", Outcome::Failed(Of::Row)),
        ("42P01", Outcome::Failed(Of::Statement)),
        ("42501", Outcome::Failed(Of::Statement)),
        ("26000", Outcome::Failed(Of::Statement)),
        ("XX000", Outcome::Failed(Of::Statement)),
        ("XX001", Outcome::Failed(Of::Files)),
        ("58030", Outcome::Failed(Of::Files)),
        ("25006", Outcome::Unreachable),
        ("57P01", Outcome::Unreachable),
        ("57P05", Outcome::Unreachable),
        ("53300", Outcome::Unreachable),
        // Looked up, and not found.
        ("08006", Outcome::Unreachable),
    ] {
        assert_eq!(store.append(&[run(code, session(), 0, vec![])]), [outcome], "{code}");
    }
}

/// An address whose role, as it were, has these defaults.
fn with_defaults(address: &str, settings: &[&str]) -> PostgresUrl {
    let options: String =
        settings.iter().map(|one| format!("%20-c{}", one.replace('=', "%3D"))).collect();
    format!("{address}{options}").parse().expect("an address")
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn defaults_of_the_role_do_not_change_what_an_append_means() {
    let defaults = ["default_transaction_isolation=serializable", "gin_fuzzy_search_limit=1"];
    let store = PostgresStore::open(&with_defaults(&address(), &defaults)).unwrap();
    for (setting, value) in
        [("default_transaction_isolation", "read committed"), ("gin_fuzzy_search_limit", "0")]
    {
        assert_eq!(text(&store, &format!("SHOW {setting}")), value);
    }
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_read_only_default_is_named() {
    let url = with_defaults(&address(), &["default_transaction_read_only=on"]);
    let refused = PostgresStore::open(&url);
    let refused = refused.unwrap_err();
    assert!(matches!(refused, StoreError::Postgres(PostgresError::ReadOnly)), "{refused}");
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn all_connections_keep_to_the_schema_of_the_store() {
    let address = address();
    let store = PostgresStore::open(&address.parse().unwrap()).unwrap();
    let schema = text(&store, "SHOW search_path");
    let before = format!("{schema}_before");
    execute(&store, &format!("CREATE SCHEMA {before}"));
    // Another schema comes first, and has no store.
    let later = with_defaults(&address, &[&format!("search_path={before},{schema}")]);
    let later = PostgresStore::open(&later).unwrap();
    assert_eq!(later.epoch(), store.epoch());
    assert_eq!(text(&later, "SHOW search_path"), schema);
}

#[test]
#[ignore = "needs PostgreSQL; tests/run has one"]
fn a_server_that_stands_still_does_not_keep_its_locks() {
    let url = url();
    let (still, other) = (PostgresStore::open(&url).unwrap(), PostgresStore::open(&url).unwrap());
    let (one, two) = (session(), session());
    assert_eq!(still.append(&[run("a", one, 0, vec![])]), [Outcome::Appended]);
    let mut appended = Vec::new();
    let outcomes = still.exclusively(&[b"a".to_vec()], &mut || {
        // As if this server had been stopped while it decides.
        let mut of_other = run("a", one, 1, vec![]);
        of_other.frames =
            vec![Frame::encode(one, Revision(2), &Body::plain(b"other")).expect("a frame")];
        appended = other.append(&[of_other, run("b", two, 0, vec![])]);
        vec![run("a", one, 1, vec![])]
    });
    assert_eq!(appended, [Outcome::Appended, Outcome::Appended]);
    assert_eq!(outcomes, [Outcome::Unreachable]);
}
