//! Rules of blobs: uploads, and references to them.

use super::Draft;
use crate::command::rejected::{BlobPlace, Rejected};
use crate::command::{
    Answer, BoardCommand, Command, Edit, LogCommand, RequestCommand, SessionCommand,
};
use crate::commit::{Change, SessionChange};
use crate::model::blob::Blob;
use crate::{BlobRef, Board, Digest, Item, LogName, MediaType, Timestamp};

/// A text in a command that may refer to blobs: its place, the name of the member that has it as its value, the text.
type Text<'a> = (BlobPlace, Option<&'a str>, &'a str);

impl Draft<'_> {
    /// Adds a blob. The media type of the first upload stays.
    ///
    /// A later upload makes a commit only once the last is long ago, so that a collection that runs now finds it.
    pub(super) fn put_blob(
        &mut self,
        sha256: Digest,
        bytes: u64,
        media_type: &MediaType,
        renewed_after_ms: i64,
    ) -> Result<Answer, Rejected> {
        let known = self.board.blobs.get(&sha256);
        let is_recent =
            |blob: &Blob| self.now < Timestamp(blob.uploaded_at.0.saturating_add(renewed_after_ms));
        if !known.is_some_and(is_recent) {
            let media_type = known.map_or(media_type, |blob| &blob.media_type).clone();
            self.change(Change::Session(SessionChange::BlobPut { sha256, bytes, media_type }));
        }
        Ok(Answer::Done)
    }

    /// Checks that the session has each blob that the command's texts refer to.
    pub(super) fn check_blobs(&self, command: &Command) -> Result<(), Rejected> {
        for (place, name, text) in texts(command) {
            let mut named = BlobRef::all_under(name, text);
            if let Some(blob) = named.find(|blob| self.board.blob(&blob.sha256).is_none()) {
                let (sha256, pointer) = (blob.sha256, blob.pointer(text));
                return Err(Rejected::NoBlob { sha256, place, pointer });
            }
        }
        Ok(())
    }
}

impl Board {
    /// Returns true if a restore to this earlier board names a blob that was deleted since.
    pub(super) fn lost_blobs_of(&self, then: &Self, restore: &Change) -> bool {
        let is_lost =
            |sha256: &Digest| then.blobs.contains_key(sha256) && self.blob(sha256).is_none();
        restore.blobs().any(|sha256| is_lost(&sha256))
    }
}

fn texts(command: &Command) -> Vec<Text<'_>> {
    match command {
        Command::Log(_, LogCommand::Append { items } | LogCommand::Replace { items })
        | Command::Ask { items, .. }
        | Command::Plan { items, .. } => of_items(items, BlobPlace::Item).collect(),
        Command::Log(_, LogCommand::PutEntry { item, .. }) => {
            vec![(BlobPlace::Value, None, item.text())]
        }
        Command::Board(BoardCommand::Replace { logs, state }) => {
            let mut texts = Vec::new();
            for (log, items) in LogName::BOARD.into_iter().zip(logs) {
                texts.extend(of_items(items, |index| BlobPlace::LogItem(log.clone(), index)));
            }
            texts.extend(state.iter().map(|state| (BlobPlace::State, None, state.text())));
            texts
        }
        Command::State(path, Edit::Put { value, .. } | Edit::Merge(value)) => {
            vec![(BlobPlace::Value, path.name(), value.text())]
        }
        Command::State(_, Edit::Append(elements)) => {
            let places = (0..).map(BlobPlace::Element);
            places.zip(elements).map(|(place, element)| (place, None, element.text())).collect()
        }
        Command::Request(_, RequestCommand::Finish { result: Some(value), .. }) => {
            vec![(BlobPlace::Result, None, value.text())]
        }
        Command::Request(
            _,
            RequestCommand::Fail { reason: Some(value), .. }
            | RequestCommand::Cancel { reason: Some(value) }
            | RequestCommand::Judge { reason: Some(value), .. },
        ) => vec![(BlobPlace::Reason, None, value.text())],
        Command::Session(SessionCommand::Put { qa_pairs, .. }) => {
            of_items(qa_pairs, BlobPlace::QaPair).collect()
        }
        // The operations of a transaction are checked one by one, a restore with its images.
        Command::Transact(_)
        | Command::Session(_)
        | Command::Board(BoardCommand::Clear { .. })
        | Command::Log(_, LogCommand::Remove { .. } | LogCommand::DeleteEntry { .. })
        | Command::Ack { .. }
        | Command::State(_, Edit::Add(_) | Edit::Remove)
        | Command::Agent(..)
        | Command::RemoveAgents
        | Command::Request(..)
        | Command::ClaimNext { .. }
        | Command::Question(..)
        | Command::Checkpoint(..) => Vec::new(),
    }
}

fn of_items<'a>(
    items: &'a [Item],
    place: impl Fn(usize) -> BlobPlace,
) -> impl Iterator<Item = Text<'a>> {
    (0..).map(place).zip(items).map(|(place, item)| (place, None, item.text()))
}
