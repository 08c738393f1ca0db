//! The accept loop of the control socket, with few connections at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::converse;
use super::socket::Socket;
use blackboard_auth::Tokens;
use blackboard_service::Service;

/// The maximum number of concurrent requests; others wait in the system's queue.
const CONVERSATIONS_MAX: usize = 8;

/// The pause after a failed accept, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the socket until `shutdown`, then aborts the requests in progress: their clients see the answer break
/// off.
pub async fn serve(socket: Socket, service: Service, tokens: Tokens, shutdown: CancellationToken) {
    let (tasks, slots) = (TaskTracker::new(), Arc::new(Semaphore::new(CONVERSATIONS_MAX)));
    shutdown
        .run_until_cancelled(accept(&socket, (&service, &tokens), &tasks, slots, &shutdown))
        .await;
    drop(socket);
    tasks.close();
    tasks.wait().await;
}

/// Accepts connections forever.
async fn accept(
    socket: &Socket,
    (service, tokens): (&Service, &Tokens),
    tasks: &TaskTracker,
    slots: Arc<Semaphore>,
    shutdown: &CancellationToken,
) {
    // The semaphore is never closed, so that the loop ends only with its future.
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match socket.accept().await {
            Ok(stream) => {
                let (service, tokens) = (service.clone(), tokens.clone());
                let shutdown = shutdown.clone();
                tasks.spawn(async move {
                    shutdown.run_until_cancelled(converse(stream, &service, &tokens)).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections to the control socket");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
