//! Images in the texts of screenshots: data URLs that are not stored apart.
//!
//! Each is read again where it is shown, so that a prompt with many of them holds one.

use std::sync::Arc;

use blackboard_thumbnail::{Bounds, Thumbnail};

use crate::yielding::Turns;
use blackboard_board::{Board, DataUrl, Entry};
use blackboard_service::{ServiceError, SessionHandle};

/// Returns the image in the text of an entry, within bounds and of one of the accepted media types. `None` if there is none
/// that can be shown.
pub(crate) async fn text_image(
    session: &SessionHandle,
    board: &Board,
    entry: &Arc<Entry>,
    bounds: Bounds,
    accepted: &[&str],
) -> Result<Option<Thumbnail>, ServiceError> {
    let (read, length) = (Arc::clone(entry), entry.item.text().len() as u64);
    let url = Turns::default().make(length, move || DataUrl::of(&read.item)).await?;
    let Some(url) = url else { return Ok(None) };
    session.shown_bytes(board, url.bytes.into(), bounds, accepted).await
}
