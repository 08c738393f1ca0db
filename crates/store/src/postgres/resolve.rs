//! Transactions with an unknown outcome: looked up by their frames, once they can no longer commit.
//!
//! A frame has a nonce, so that the one at the expected revision is ours or another server's. The transaction that
//! broke may still be at work in the server; its connection is ended before anything is compared.

use std::time::{Duration, Instant};

use deadpool_postgres::Object;

use super::connection::{ANSWER_MAX, Connections, within};
use super::statement::statement;
use crate::{Outcome, Run, StoreError};

/// The longest time for finding out.
const SOUGHT_MAX: Duration = Duration::from_millis(1500);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Returns the outcome of each run of a broken transaction: stored, or not, or in doubt if the service does not tell in
/// time.
pub(super) async fn outcomes(connections: &Connections, runs: &[&Run]) -> Vec<Outcome> {
    let begun = Instant::now();
    loop {
        match within(ANSWER_MAX, look(connections, runs)).await {
            Ok(Some(outcomes)) => {
                let stored = outcomes.iter().filter(|one| **one == Outcome::Appended).count();
                tracing::info!(runs = runs.len(), stored, "the outcome of a transaction was found");
                return outcomes;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the outcome of a transaction is not known yet"),
        }
        if begun.elapsed() > SOUGHT_MAX {
            return vec![Outcome::InDoubt; runs.len()];
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns `None` while the transaction may still commit.
async fn look(
    connections: &Connections,
    runs: &[&Run],
) -> Result<Option<Vec<Outcome>>, StoreError> {
    let client = connections.writer().await?;
    // Ends this server's other connections for appends, and returns how many were left.
    let name = connections.writer_name();
    let end_others = statement! {
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE application_name = {name} AND datname = current_database() AND pid <> pg_backend_pid()",
        name
    };
    if end_others.value::<i64>(&client).await? > 0 {
        return Ok(None);
    }
    let mut outcomes = Vec::with_capacity(runs.len());
    for run in runs {
        outcomes.push(outcome(&client, run).await?);
    }
    Ok(Some(outcomes))
}

async fn outcome(client: &Object, run: &Run) -> Result<Outcome, StoreError> {
    let Some(frame) = run.frames.first() else { return Ok(Outcome::InDoubt) };
    let revision = run.after().next().0.cast_signed();
    let is_stored = statement! {
        "SELECT frame = {frame} FROM history_commit WHERE session = {session} AND revision = {revision}",
        frame = *frame, session = run.session.0, revision
    };
    let is_ours = is_stored.value_if_any(client).await?;
    Ok(if is_ours == Some(true) { Outcome::Appended } else { Outcome::Unreachable })
}
