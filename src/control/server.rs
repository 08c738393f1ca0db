//! The accept loop of the control socket, with few connections at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::converse;
use super::socket::Socket;
use crate::auth::Tokens;
use crate::service::Service;

/// How many requests are carried out at once; others wait in the system's queue.
const CONVERSATIONS_MAX: usize = 8;

/// How long to wait after the system refused to give a connection: for want of descriptors, mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers at the socket until `shutdown`, and ends what is still under way then: who asked sees that it broke
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

/// Accepts for ever.
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
