//! Patching an entry: read, patch outside the writer, write if unchanged, else retry.

use std::sync::Arc;

use crate::history::blocking;
use crate::image_bytes::ImageBytes;
use crate::{Keep, Reply, ServiceError, SessionHandle};
use blackboard_board::{
    Board, Command, ITEM_BYTES_MAX, InvalidItem, Item, LogCommand, LogName, Rejected, Revision,
    Screenshot, Seq, Terms, json, patchable,
};

/// The number of tries of a patch whose entry is changed meanwhile.
const PATCH_TRIES_MAX: usize = 256;

/// The largest whole text, image included, that a patch may make.
const PATCHED_BYTES_MAX: usize = 32 << 20;

/// A change of an item, as text.
#[derive(Clone, Debug)]
pub enum Patch {
    /// A JSON Merge Patch (RFC 7396).
    Merge(String),
    /// A JSON Patch (RFC 6902).
    Json(String),
}

impl Patch {
    fn apply(&self, text: &str) -> Result<String, json::PatchError> {
        match self {
            Self::Merge(patch) => Ok(json::merge_patch(text, patch)),
            Self::Json(patch) => json::json_patch(text, patch, PATCHED_BYTES_MAX),
        }
    }
}

impl SessionHandle {
    /// Patches one entry. For a keyed write, `keep` makes the answer to a repeat.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; nothing was changed, unless the error says that the outcome is unknown.
    pub async fn patch_entry(
        &self,
        terms: Terms,
        log: LogName,
        seq: Seq,
        patch: &Patch,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        let mut turn = None;
        for _ in 0..PATCH_TRIES_MAX {
            let (command, images) = match self.patched_command(&terms, &log, seq, patch).await {
                Ok(made) => made,
                // The entry of a repeat may be changed or deleted by now, also by the first request.
                Err(error) => return self.recall(&terms).await?.map(Reply::Before).ok_or(error),
            };
            match self.write(terms.clone(), command, images, keep.clone()).await {
                Err(ServiceError::Rejected { rejected: Rejected::Stale, .. }) if turn.is_none() => {
                    let entry = (self.name.clone(), log.clone(), seq);
                    turn = Some(self.service.inner.patches.wait(entry).await?);
                }
                Err(ServiceError::Rejected { rejected: Rejected::Stale, .. }) => {}
                result => return result,
            }
        }
        Err(ServiceError::Overloaded)
    }

    /// Makes the command that replaces the entry by the patched one, on the condition that the entry does not change meanwhile.
    async fn patched_command(
        &self,
        terms: &Terms,
        log: &LogName,
        seq: Seq,
        patch: &Patch,
    ) -> Result<(Command, Vec<ImageBytes>), ServiceError> {
        let (board, basis, text) = self.entry_to_patch(terms, log, seq).await?;
        let revision = board.revision();
        let (of, patch) = (log.clone(), patch.clone());
        // A small patch may copy a value until the result is large, hence the blocking thread.
        let made = blocking(move || {
            let text = patch.apply(&text);
            let text = text.map_err(|error| ServiceError::Patch { error, revision })?;
            Ok(patched(&of, &text)?)
        });
        let (item, images) = made.await?;
        let command =
            Command::Log(log.clone(), LogCommand::PutEntry { seq, item, basis: Some(basis) });
        Ok((command, images))
    }

    async fn entry_to_patch(
        &self,
        terms: &Terms,
        log: &LogName,
        seq: Seq,
    ) -> Result<(Arc<Board>, Revision, String), ServiceError> {
        let refuse = |rejected, revision| ServiceError::Rejected { rejected, revision };
        let Some(published) = self.published().await? else {
            return Err(refuse(Rejected::NoSession { session: self.name.clone() }, None));
        };
        let board = published.board;
        let entry = patchable(&board, log, seq, &terms.condition)
            .map_err(|rejected| refuse(rejected, Some(board.revision())))?;
        let text = self.service.whole_text(&board, &entry.item).await?;
        Ok((Arc::clone(&board), entry.revision, text))
    }
}

/// Makes the item of a patch's result. A string is refused, since only a POST takes strings.
fn patched(log: &LogName, text: &str) -> Result<(Item, Vec<ImageBytes>), InvalidItem> {
    if json::kind(text) != json::Kind::Object {
        return Err(InvalidItem::NotAnItem { found: json::kind(text) });
    }
    if *log != LogName::Screenshots {
        if text.len() > ITEM_BYTES_MAX {
            return Err(InvalidItem::TooLarge { bytes: text.len() });
        }
        return Ok((Item::from_json(text)?, Vec::new()));
    }
    let screenshot = Screenshot::from_json(text)?;
    Ok(ImageBytes::split(screenshot))
}
