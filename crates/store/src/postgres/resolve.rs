//! Transactions with an unknown outcome: looked up by their frames, once they can no longer commit.
//!
//! A frame has a nonce, so that the one at the expected revision is ours or another server's. The transaction that
//! broke may still be at work in the server; its connection is ended before anything is compared.

use std::time::{Duration, Instant};

use deadpool_postgres::Object;

use super::connection::{ANSWER_MAX, Connections, within};
use super::error::failed;
use crate::{Outcome, Run, StoreError};

/// The longest time for finding out.
const SOUGHT_MAX: Duration = Duration::from_millis(1500);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Ends this server's other connections for appends, and returns how many were left.
const END_OTHERS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
    WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()";

const IS_STORED: &str =
    "SELECT frame = $3 FROM history_commit WHERE session = $1 AND revision = $2";

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
    let row = client.query_one(END_OTHERS, &[&connections.writer_name()]).await.map_err(failed)?;
    if row.try_get::<_, i64>(0).map_err(failed)? > 0 {
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
    let found = client.query_opt(IS_STORED, &[&run.session.0, &revision, frame]).await;
    let found = found.map_err(failed)?;
    let is_ours = found.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    Ok(if is_ours == Some(true) { Outcome::Appended } else { Outcome::Unreachable })
}
