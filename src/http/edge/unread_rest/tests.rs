//! Tests of unread bodies that arrive slowly or never end.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{self, StreamExt as _};
use tokio::time::sleep;

use super::*;

const PIECE: &str = "a piece of a body that nobody reads, in lines of this length, again";

/// Returns an endless body, with a pause before each piece, and the number of pieces taken.
fn endless(pause: Duration) -> (Body, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let pieces = stream::repeat_with({
        let taken = Arc::clone(&taken);
        move || {
            taken.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(PIECE.repeat(100))
        }
    });
    let paced = pieces.then(move |piece| async move {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        piece
    });
    (Body::from_stream(paced), taken)
}

/// Returns true if the connection stays open after an answer that left this body unread.
async fn goes_on(body: Body) -> bool {
    let mut request = Request::new(body);
    let rest = Rest::of(&mut request);
    drop(request);
    let mut response = Response::new(Body::empty());
    if let Some(left) = rest.left() {
        left.settle(&mut response).await;
    }
    response.headers().get(header::CONNECTION).is_none()
}

#[tokio::test]
async fn a_rest_that_drips_is_given_up() {
    let (body, taken) = endless(Duration::from_millis(100));
    assert!(!goes_on(body).await);
    assert!(taken.load(Ordering::Relaxed) <= 11);
}

#[tokio::test]
async fn of_a_rest_without_an_end_only_so_much_is_read() {
    let (body, taken) = endless(Duration::ZERO);
    assert!(!goes_on(body).await);
    let bytes = taken.load(Ordering::Relaxed) * 100 * PIECE.len();
    assert!(bytes < LINGER_BYTES_MAX + (1 << 20), "{bytes}");
}

#[tokio::test]
async fn a_rest_that_ends_soon_lets_the_connection_go_on() {
    let body = Body::from_stream(stream::iter([Ok::<_, io::Error>("a"), Ok("b")]));
    assert!(goes_on(body).await);
    assert!(goes_on(Body::empty()).await);
}
