//! Appending: one statement for each run, one transaction for a batch, sent without waiting for answers in between.
//!
//! A statement stores its commits only if the head is the expected one, and says how many it stored. Statements go in
//! the order of names, so that servers which append to the same sessions wait for each other in one order.

use std::future::{Future, poll_fn};
use std::task::Poll;

use deadpool_postgres::Object;
use tokio_postgres::Statement as Prepared;
use uuid::Uuid;

use super::error::{failed, leaves_open, outcome_of};
use super::statement::{Statement, statement};
use crate::{Outcome, PostgresFailure, Run, SessionRow, StoreError};
use blackboard_board::{Digest, Revision, Seal, SessionId};

/// The seal of the last commit that is added.
macro_rules! last_seal {
    () => {
        seal_of!("({frames}::bytea[])[cardinality({frames}::bytea[])]")
    };
}

/// Sets the row of a session.
macro_rules! set_row {
    () => {
        concat!(
            "head = {head}, bytes = bytes + {bytes}, is_live = {is_live}, next_due = {next_due}, labels = {labels}, \
             asks = {asks}, requests = {requests}, over_budget = {over_budget}, is_limited = {is_limited}, \
             summary = {summary}, image_bytes = {image_bytes}, has_blobs = {has_blobs}, seal = ",
            last_seal!()
        )
    };
}

/// Holds the blobs that the commits name.
macro_rules! holds_blobs {
    () => {
        "({blobs}::bigint = 0 OR {blobs} = (SELECT count(*) FROM (SELECT FROM blob WHERE blob.session = {session} \
         AND digest = ANY ({digests}::bytea[]) FOR KEY SHARE) AS held))"
    };
}

macro_rules! insert_commits {
    () => {
        " INSERT INTO history_commit (session, revision, frame) SELECT changed.id, added.revision, added.frame \
         FROM changed, unnest({revisions}::bigint[], {frames}::bytea[]) AS added (revision, frame)"
    };
}

/// Stores the parts of a deleted session's base.
macro_rules! insert_parts {
    () => {
        "parts AS (INSERT INTO history_base (session, content, part, frame) \
         SELECT changed.id, {content}, added.part, added.frame \
         FROM changed, unnest({parts}::bytea[]) WITH ORDINALITY AS added (frame, part))"
    };
}

/// Finds the session at the expected head. The commit there, if it is retained, is the one that the server knows, by its
/// seal, which is NULL if that is not known.
macro_rules! is_expected {
    () => {
        concat!(
            " WHERE id = {session} AND head = {expected} AND staged_at IS NULL AND ended_at IS NULL AND ",
            holds_blobs!(),
            " AND (seal = {seal}::bytea) IS NOT FALSE RETURNING id)"
        )
    };
}

/// Gives the name to the session, if it has no other one than expected. All conditions are here: a statement that is not
/// to store anything must not give the name either. The session before has its expected head, by revision and seal.
macro_rules! claim {
    ($from:literal) => {
        concat!(
            "WITH named AS (INSERT INTO session_name AS owner (name, session) SELECT {name}::bytea, {session}::uuid ",
            $from,
            holds_blobs!(),
            " AND ({seal}::bytea IS NULL OR NOT EXISTS (SELECT FROM session AS former WHERE former.id = {before}::uuid \
             AND (former.head <> {before_head}::bigint OR former.seal <> {seal}))) \
             ON CONFLICT (name) DO UPDATE SET session = excluded.session WHERE owner.session = {before}::uuid \
             RETURNING session), "
        )
    };
}

/// Makes the statement of a run with a row: the parameters that all have, and those named.
macro_rules! of_row {
    ($run:ident, $row:ident, $text:expr, $($name:ident),+) => {
        statement!(
            $text,
            session = $run.session,
            $($name = $run.$name,)+
            head = $run.head,
            bytes = $run.bytes,
            is_live = $row.row.exists,
            next_due = $row.next_due,
            labels = $row.labels,
            asks = $row.row.asks,
            requests = $row.row.requests,
            over_budget = $row.row.is_over_budget,
            is_limited = $row.row.is_limited,
            summary = $row.row.summary,
            image_bytes = $row.image_bytes,
            has_blobs = $row.row.has_blobs,
            revisions = $run.revisions,
            frames = $run.frames,
            blobs = $row.blobs,
            digests = $row.digests,
        )
    };
}

/// Makes the commit of the transaction wait for the disk and for standbys, whatever the connection's setting is: a pooler,
/// or a default that was changed meanwhile, may give it another one.
pub(super) const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', true) \
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')";

/// The outcome of a run whose row the database rejects.
pub(super) const REJECTED: Outcome = Outcome::Failed(PostgresFailure::Row);

/// The end of a transaction without an outcome for each run.
pub(super) enum Broken {
    /// Nothing was stored.
    RolledBack(Outcome),
    /// The connection broke, perhaps after the commit.
    Unknown(StoreError),
}

/// The reason for which a transaction of appends did not go through.
enum Unstored {
    /// The database rejects the row of the run at this place. Nothing was stored.
    Rejected(usize),
    Broken(Broken),
}

impl From<Broken> for Unstored {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl Unstored {
    /// Returns the end by an error of the run at this place.
    fn at(place: usize, error: tokio_postgres::Error) -> Self {
        match Broken::of(error, false) {
            Broken::RolledBack(REJECTED) => Self::Rejected(place),
            broken @ (Broken::RolledBack(_) | Broken::Unknown(_)) => Self::Broken(broken),
        }
    }
}

/// A run as the values of its statement.
pub(super) struct Bound<'a> {
    run: &'a Run,
    session: Uuid,
    expected: i64,
    head: i64,
    bytes: i64,
    revisions: Vec<i64>,
    frames: Vec<&'a [u8]>,
    row: Option<RowBound<'a>>,
    name: Option<&'a [u8]>,
    before: Option<Uuid>,
    before_head: Option<i64>,
    seal: Option<&'a [u8]>,
    ended_at: Option<i64>,
    base: Option<i64>,
    content: Option<Uuid>,
    parts: Vec<&'a [u8]>,
}

struct RowBound<'a> {
    row: &'a SessionRow,
    next_due: Option<i64>,
    image_bytes: i64,
    labels: Vec<String>,
    digests: Vec<&'a [u8]>,
    blobs: i64,
}

impl<'a> Bound<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let claim = run.claim.as_ref();
        let before = claim.and_then(|claim| claim.before);
        let row = run.row.as_deref();
        let first = run.after().next();
        let revisions = (first.0..).take(run.frames.len()).map(u64::cast_signed).collect();
        let ends = run.ends.as_ref();
        Self {
            run,
            session: run.session.0,
            expected: run.expected.0.cast_signed(),
            head: run.head().0.cast_signed(),
            bytes: run.history_bytes().cast_signed(),
            revisions,
            frames: run.frames.iter().map(Vec::as_slice).collect(),
            row: row.map(RowBound::of),
            name: claim.map(|claim| claim.name.as_slice()),
            before: before.map(|(SessionId(id), _)| id),
            before_head: before.map(|(_, head)| head.0.cast_signed()),
            seal: row.and_then(|row| row.before.as_ref()).map(|Seal(bytes)| bytes.as_slice()),
            ended_at: row.filter(|row| !row.exists).map(|row| row.updated_at.0),
            base: ends.map(|end| end.revision.0.cast_signed()),
            content: ends.map(|_| Uuid::now_v7()),
            parts: ends.into_iter().flat_map(|end| &end.parts).map(Vec::as_slice).collect(),
        }
    }

    /// Returns the statement that appends the run.
    pub(super) fn statement(&self) -> Statement<'_> {
        let Some(row) = &self.row else { return self.append_staged() };
        let is_new = self.before != Some(self.session);
        match (self.name, &self.run.ends) {
            (Some(_), _) if self.run.adopts => self.adopt(row),
            (Some(_), _) if is_new => self.create(row),
            (_, Some(_)) => self.end(row),
            (_, None) => self.follow(row),
        }
    }

    /// Appends to a session.
    fn follow<'b>(&'b self, row: &'b RowBound<'_>) -> Statement<'b> {
        of_row! {
            self, row,
            concat!(
                "WITH changed AS (UPDATE session SET ",
                set_row!(),
                is_expected!(),
                insert_commits!()
            ),
            expected, seal
        }
    }

    /// Creates a session, perhaps one that has its end already.
    fn create<'b>(&'b self, row: &'b RowBound<'_>) -> Statement<'b> {
        of_row! {
            self, row,
            concat!(
                claim!("WHERE "),
                "changed AS (INSERT INTO session (id, name, head, bytes, is_live, next_due, labels, asks, requests, \
                 over_budget, is_limited, summary, image_bytes, has_blobs, ended_at, base, base_content, seal) \
                 SELECT session, {name}, {head}, {bytes}, {is_live}, {next_due}, {labels}, {asks}, {requests}, \
                 {over_budget}, {is_limited}, {summary}, {image_bytes}, {has_blobs}, {ended_at}::bigint, \
                 {base}::bigint, {content}::uuid, ",
                last_seal!(),
                " FROM named RETURNING id), ",
                insert_parts!(),
                insert_commits!()
            ),
            name, before, before_head, seal, ended_at, base, content, parts
        }
    }

    /// Makes a staged history a session's own.
    fn adopt<'b>(&'b self, row: &'b RowBound<'_>) -> Statement<'b> {
        of_row! {
            self, row,
            concat!(
                claim!(
                    "FROM session WHERE id = {session} AND staged_at IS NOT NULL AND head <= {expected} AND "
                ),
                "changed AS (UPDATE session SET name = {name}, staged_at = NULL, base = put_base, \
                 base_content = put_content, put_base = NULL, put_content = NULL, ",
                set_row!(),
                " FROM named WHERE id = named.session RETURNING id)",
                insert_commits!()
            ),
            expected, name, before, before_head, seal
        }
    }

    /// Deletes a session: its end replaces its history.
    fn end<'b>(&'b self, row: &'b RowBound<'_>) -> Statement<'b> {
        of_row! {
            self, row,
            concat!(
                "WITH changed AS (UPDATE session SET ended_at = {ended_at}::bigint, base = {base}::bigint, \
                 base_content = {content}::uuid, put_base = NULL, put_content = NULL, ",
                set_row!(),
                is_expected!(),
                ", commits AS (DELETE FROM history_commit USING changed WHERE history_commit.session = changed.id), \
                 bases AS (DELETE FROM history_base USING changed WHERE history_base.session = changed.id), ",
                insert_parts!(),
                insert_commits!()
            ),
            expected, seal, ended_at, base, content, parts
        }
    }

    /// Appends to a staged history.
    fn append_staged(&self) -> Statement<'_> {
        statement! {
            concat!(
                "WITH changed AS (UPDATE session SET head = {head}, bytes = bytes + {bytes} \
                 WHERE id = {session} AND head <= {expected} AND staged_at IS NOT NULL RETURNING id)",
                insert_commits!()
            ),
            session = self.session, expected = self.expected, head = self.head, bytes = self.bytes,
            revisions = self.revisions, frames = self.frames
        }
    }
}

impl<'a> RowBound<'a> {
    fn of(row: &'a SessionRow) -> Self {
        Self {
            row,
            next_due: row.next_due.map(|due| due.0),
            image_bytes: row.image_bytes.cast_signed(),
            labels: labels_of(row),
            digests: row.blobs.iter().map(|Digest(bytes)| bytes.as_slice()).collect(),
            blobs: i64::try_from(row.blobs.len()).unwrap_or(i64::MAX),
        }
    }
}

/// Returns the labels by which a session is found. A label with U+0000, which only an archive of an older store may bring,
/// is left out: a text of PostgreSQL cannot hold it, and no list asks for it.
fn labels_of(row: &SessionRow) -> Vec<String> {
    let labels = row.labels.iter().map(|(name, value)| label(name, value));
    labels.filter(|label| !label.contains('\0')).collect()
}

/// A label as an element of an array. Two labels may be one text, since a name may have a line feed: the caller compares
/// what it finds.
pub(super) fn label(name: &str, value: &str) -> String {
    format!("{name}\n{value}")
}

/// Appends runs that stand alone in one transaction, in one round trip. A row that the database rejects ends the
/// transaction, so the other runs are appended once more without it.
pub(super) async fn alone(client: &Object, runs: &[&Run]) -> Result<Vec<Outcome>, Broken> {
    let mut outcomes = vec![REJECTED; runs.len()];
    let mut left: Vec<usize> = (0..runs.len()).collect();
    while !left.is_empty() {
        match in_one_trip(client, &chosen(runs, &left)).await {
            Ok(stored) => {
                fill(&mut outcomes, &left, &stored);
                break;
            }
            Err(Unstored::Rejected(place)) => drop(left.remove(place)),
            Err(Unstored::Broken(broken)) => return Err(broken),
        }
    }
    Ok(outcomes)
}

fn chosen<'a>(runs: &[&'a Run], places: &[usize]) -> Vec<&'a Run> {
    places.iter().filter_map(|place| runs.get(*place).copied()).collect()
}

fn fill(outcomes: &mut [Outcome], places: &[usize], of_places: &[Outcome]) {
    for (place, outcome) in places.iter().zip(of_places) {
        if let Some(slot) = outcomes.get_mut(*place) {
            *slot = *outcome;
        }
    }
}

async fn in_one_trip(client: &Object, runs: &[&Run]) -> Result<Vec<Outcome>, Unstored> {
    let bound: Vec<Bound<'_>> = runs.iter().map(|run| Bound::of(run)).collect();
    let mut statements = vec![Statement::plain("BEGIN"), Statement::plain(DURABLE)];
    let before = statements.len();
    statements.extend(bound.iter().map(Bound::statement));
    statements.push(Statement::plain("COMMIT"));
    let mut prepared = Vec::with_capacity(statements.len());
    for statement in &statements {
        prepared.push(prepare(client, statement).await?);
    }
    let sent = prepared.iter().zip(&statements);
    let sent = sent.map(|(prepared, statement)| client.execute(prepared, &statement.values));
    let mut answers = in_order(sent.collect()).await;
    let committed = answers.pop();
    let mut outcomes = Vec::with_capacity(runs.len());
    // The first failure is the reason; the statements after it say that the transaction is over.
    let of_runs = answers.split_off(before.min(answers.len()));
    for begun in answers {
        begun.map_err(|error| Broken::of(error, false))?;
    }
    for (place, stored) in of_runs.into_iter().enumerate() {
        outcomes.push(outcome(stored.map_err(|error| Unstored::at(place, error))?));
    }
    match committed {
        Some(Err(error)) => Err(Broken::of(error, true).into()),
        Some(Ok(_)) | None => Ok(outcomes),
    }
}

/// Polls each future once, in order, so that each sends its message; then waits for all.
async fn in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, done) in &mut futures {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        Poll::Ready(())
    })
    .await;
    let mut outputs = Vec::with_capacity(futures.len());
    for (future, done) in futures {
        outputs.push(match done {
            Some(output) => output,
            None => future.await,
        });
    }
    outputs
}

/// Begins a transaction of appends.
pub(super) async fn begin(client: &Object) -> Result<(), Broken> {
    end(client, "BEGIN").await?;
    end(client, DURABLE).await
}

/// Appends runs in the client's open transaction; returns their outcomes, none of which is durable yet. A run whose row
/// the database rejects fails with its group; the others are appended.
pub(super) async fn within(client: &Object, runs: &[&Run]) -> Result<Vec<Outcome>, Broken> {
    let mut outcomes = vec![REJECTED; runs.len()];
    let mut left: Vec<usize> = (0..runs.len()).collect();
    while !left.is_empty() {
        end(client, "SAVEPOINT runs").await?;
        match one_by_one(client, &chosen(runs, &left)).await {
            Ok(stored) => {
                fill(&mut outcomes, &left, &stored);
                break;
            }
            Err(Unstored::Rejected(place)) => {
                end(client, "ROLLBACK TO SAVEPOINT runs").await?;
                let rejected = left.remove(place);
                let group = |place: usize| runs.get(place).and_then(|run| run.group);
                left.retain(|place| group(*place).is_none() || group(*place) != group(rejected));
            }
            Err(Unstored::Broken(broken)) => return Err(broken),
        }
    }
    Ok(outcomes)
}

async fn one_by_one(client: &Object, runs: &[&Run]) -> Result<Vec<Outcome>, Unstored> {
    let mut outcomes = Vec::with_capacity(runs.len());
    for (place, bound) in runs.iter().map(|run| Bound::of(run)).enumerate() {
        let statement = bound.statement();
        let prepared = prepare(client, &statement).await?;
        let stored = client.execute(&prepared, &statement.values).await;
        outcomes.push(outcome(stored.map_err(|error| Unstored::at(place, error))?));
    }
    Ok(outcomes)
}

/// Ends the client's open transaction.
pub(super) async fn end(client: &Object, how: &str) -> Result<(), Broken> {
    client.batch_execute(how).await.map_err(|error| Broken::of(error, how == "COMMIT"))
}

async fn prepare(client: &Object, statement: &Statement<'_>) -> Result<Prepared, Broken> {
    client.prepare_cached(statement.text).await.map_err(|error| Broken::of(error, false))
}

/// Returns the outcome of a statement that stored so many commits.
fn outcome(stored: u64) -> Outcome {
    if stored > 0 { Outcome::Appended } else { Outcome::Conflict { head: Revision::default() } }
}

impl Broken {
    fn of(error: tokio_postgres::Error, commits: bool) -> Self {
        match error.code() {
            Some(code) if !commits && !leaves_open(code) => {
                Self::RolledBack(outcome_of(&error, code))
            }
            // An error of the commit itself may come after it, as while it waits for a standby.
            Some(_) | None => Self::Unknown(failed(error)),
        }
    }
}
