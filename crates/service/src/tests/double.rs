//! Methods of the store's traits for test doubles, by name; each signature stands here once.
//!
//! `double!(to store: base pin);` forwards two methods to a field, `double!(always Ok(()); stage);` gives one answer. A double
//! writes the others itself. It imports the types by `blackboard_store::*`.

macro_rules! double {
    (to $field:ident: $($method:ident)+) => { $(double! { @$method (to $field) })+ };
    (always $answer:expr; $($method:ident)+) => { $(double! { @$method (always $answer) })+ };
    (@ (to $field:ident) $method:ident($($name:ident: $type:ty),*) -> $returned:ty) => {
        fn $method(&self, $($name: $type),*) -> $returned {
            self.$field.$method($($name),*)
        }
    };
    (@ (always $answer:expr) $method:ident($($name:ident: $type:ty),*) -> $returned:ty) => {
        fn $method(&self, $(_: $type),*) -> $returned {
            $answer
        }
    };

    // Of `Store`.
    (@commits $how:tt) => { double! { @ $how commits(session: SessionId, after: Revision, max: PageMax)
        -> Result<Vec<(Revision, Vec<u8>)>, StoreError> } };
    (@base $how:tt) => { double! { @ $how base(session: SessionId) -> Result<Option<Revision>, StoreError> } };
    (@read_base $how:tt) => { double! { @ $how
        read_base(session: SessionId, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), StoreError> } };
    (@pin $how:tt) => { double! { @ $how pin(session: SessionId) -> Result<Box<dyn Pinned>, StoreError> } };
    (@stage $how:tt) => { double! { @ $how stage(session: SessionId) -> Result<(), StoreError> } };
    (@put_base $how:tt) => { double! { @ $how put_base(
        session: SessionId, base: Revision, frees: u64, parts: &mut dyn Iterator<Item = Vec<u8>>
    ) -> Result<(), StoreError> } };
    (@set_base $how:tt) => { double! { @ $how set_base(session: SessionId, base: Revision) -> Outcome } };
    (@discard $how:tt) => { double! { @ $how discard(session: SessionId) -> Result<(), StoreError> } };
    (@forget $how:tt) => { double! { @ $how forget(sessions: &[SessionId]) -> Result<(), StoreError> } };
    (@tokens $how:tt) => { double! { @ $how tokens() -> Result<Vec<TokenRow>, StoreError> } };
    (@put_token $how:tt) => { double! { @ $how put_token(id: Uuid, body: Option<&[u8]>) -> Result<(), StoreError> } };
    (@tokens_version $how:tt) => { double! { @ $how tokens_version() -> Result<u64, StoreError> } };
    (@logout_store $how:tt) => { double! { @ $how logout_store() -> Option<&dyn LogoutStore> } };
    (@epoch $how:tt) => { double! { @ $how epoch() -> Epoch } };
    (@signing_key $how:tt) => { double! { @ $how signing_key() -> &SigningKey } };
    (@health $how:tt) => { double! { @ $how health() -> Health } };
    (@close $how:tt) => { double! { @ $how close() -> Result<(), StoreError> } };

    // Of `EmbeddedStore`.
    (@replay $how:tt) => { double! { @ $how
        replay(visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>) -> Result<(), StoreError> } };
    (@sessions $how:tt) => { double! { @ $how sessions() -> Vec<StoredSession> } };
    (@summaries $how:tt) => { double! { @ $how
        summaries(visit: &mut dyn FnMut(&SummaryRow) -> ControlFlow<()>) -> Result<(), StoreError> } };
    (@replay_journal $how:tt) => { double! { @ $how
        replay_journal(visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>) -> Result<(), StoreError> } };
    (@misfits $how:tt) => { double! { @ $how misfits(is_over: &IsOver) -> Result<Vec<String>, StoreError> } };
    (@uncompacted_bytes $how:tt) => { double! { @ $how uncompacted_bytes() -> u64 } };
    (@file_bytes $how:tt) => { double! { @ $how file_bytes() -> FileBytes } };
    (@compact $how:tt) => { double! { @ $how
        compact(summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>) -> Result<bool, StoreError> } };
    (@put_summaries $how:tt) => { double! { @ $how put_summaries(summaries: &[SummaryRow]) -> Result<(), StoreError> } };
    (@put_snapshot $how:tt) => { double! { @ $how
        put_snapshot(session: SessionId, revision: Revision, parts: &mut dyn Iterator<Item = Vec<u8>>)
        -> Result<(), StoreError> } };
    (@read_snapshot $how:tt) => { double! { @ $how read_snapshot(
        session: SessionId, up_to: Revision, visit: &mut dyn FnMut(Revision, &[u8]) -> ControlFlow<()>
    ) -> Result<Option<Revision>, StoreError> } };
    (@has_unpinned $how:tt) => { double! { @ $how has_unpinned() -> bool } };
    (@names $how:tt) => { double! { @ $how names() -> Result<Vec<NameRow>, StoreError> } };
    (@free_space $how:tt) => { double! { @ $how free_space() -> Option<FreeSpace> } };
    (@back_up $how:tt) => { double! { @ $how
        back_up(to: &Path, is_over: &IsOver, progress: &Progress) -> Result<Copied, StoreError> } };
    (@look_at $how:tt) => { double! { @ $how
        look_at(scratch: Option<&Path>, is_over: &IsOver, look: &mut dyn FnMut(&dyn EmbeddedStore))
        -> Result<(), StoreError> } };
    (@idle $how:tt) => { double! { @ $how idle() -> bool } };

    // Of `BlobStore`.
    (@put_blob $how:tt) => { double! { @ $how
        put_blob(session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> } };
    (@begin_blob $how:tt) => { double! { @ $how begin_blob(session: SessionId) -> Result<Box<dyn BlobDraft>, StoreError> } };
    (@blob $how:tt) => { double! { @ $how blob(session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> } };
    (@link_blobs $how:tt) => { double! { @ $how
        link_blobs(from: SessionId, to: SessionId, digests: &mut dyn Iterator<Item = Digest>)
        -> Result<(), StoreError> } };
    (@remove_blob $how:tt) => { double! { @ $how
        remove_blob(session: SessionId, digest: Digest, is_free: &dyn Fn() -> bool) -> Result<bool, StoreError> } };
    (@remove_blobs $how:tt) => { double! { @ $how remove_blobs(sessions: &[SessionId]) -> Result<(), StoreError> } };
    (@sweep_blobs $how:tt) => { double! { @ $how sweep_blobs() -> Result<bool, StoreError> } };
    (@clear_blobs $how:tt) => { double! { @ $how
        clear_blobs(live: &HashSet<SessionId>, go_on: &dyn Fn() -> bool) -> Result<(), StoreError> } };
    (@blobs_of $how:tt) => { double! { @ $how
        blobs_of(session: SessionId, visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>)
        -> Result<(), StoreError> } };
    (@blobs $how:tt) => { double! { @ $how
        blobs(visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>) -> Result<(), StoreError> } };
}
pub(super) use double;
