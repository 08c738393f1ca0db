//! Blocking work on threads, fair among clients.
//!
//! The runtime's own queue for such threads has neither a bound nor an order among clients. Here as many tasks
//! compute as there are processors, and some of the threads are reserved for files.

use std::any::Any;
use std::sync::LazyLock;

use tokio::task::{JoinError, spawn_blocking};

use super::processor_time::processors;
use super::{Client, Share, SharedPlaces};

/// The maximum number of threads that read or write files for requests, half of the runtime's.
const FILES_AT_ONCE_MAX: u64 = 32;

/// Work that computes. The limit of connections bounds its queue.
static COMPUTING: LazyLock<SharedPlaces> =
    LazyLock::new(|| SharedPlaces::new(processors(), usize::MAX, Share::All));

/// Work that mostly waits for files.
static FILES: LazyLock<SharedPlaces> =
    LazyLock::new(|| SharedPlaces::new(FILES_AT_ONCE_MAX, usize::MAX, Share::All));

/// Work of any type. The runtime's code for a task is compiled once for it, and not for each closure of the doors, where it was
/// an eighth of all code.
type AnyWork = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// Runs work that computes, once it is its client's turn.
///
/// # Errors
///
/// If the work panicked.
pub async fn compute<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    in_turn(&COMPUTING, Box::new(|| Box::new(work()))).await.map(of_type)
}

/// Runs work that waits for files, once it is its client's turn.
///
/// # Errors
///
/// If the work panicked.
pub async fn with_files<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    in_turn(&FILES, Box::new(|| Box::new(work()))).await.map(of_type)
}

fn of_type<T: 'static>(result: Box<dyn Any + Send>) -> T {
    match result.downcast() {
        Ok(result) => *result,
        Err(_) => unreachable!("the result has the type of its work"),
    }
}

async fn in_turn(places: &SharedPlaces, work: AnyWork) -> Result<Box<dyn Any + Send>, JoinError> {
    let client = Client::current();
    let place = match places.turn(1) {
        Ok(turn) => turn.await,
        Err(busy) => Err(busy),
    };
    spawn_blocking(move || {
        // The place is held until the work ends, even if its request was cancelled.
        let _place = place;
        client.during(work)
    })
    .await
}
