//! Blobs: chunks under a content of their own, and a row that gives them to a session.
//!
//! A blob that was put a short while ago may be named by a commit on its way from any server. Such a one is not
//! removed, and an append that names a removed one is refused.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio_postgres::Client;
use uuid::Uuid;

use super::PostgresStore;
use super::connection::Connections;
use super::error::failed;
use super::history::without_existing;
use super::statement::{NOW_MS, statement};
use crate::{BlobDraft, BlobStore, StoreError, StoredBlob};
use blackboard_board::{Digest, SessionId};

/// The bytes of a chunk.
const CHUNK_BYTES: usize = 1 << 20;

/// The age from which a blob may be removed alone.
const AGE_MIN: Duration = Duration::from_secs(60);

/// The number of blobs whose time this server remembers, so that those of refused writes can go at once.
const FRESH_MAX: usize = 10_000;

/// The number of rows listed at once.
const ROWS_AT_ONCE: i64 = 1_000;

/// The times of blobs that this server put, by session and digest.
#[derive(Clone, Debug, Default)]
pub(super) struct Fresh(Arc<Mutex<HashMap<(SessionId, Digest), i64>>>);

impl Fresh {
    /// Notes the time of a new blob.
    fn add(&self, session: SessionId, digest: Digest, touched: i64) {
        let mut fresh = self.0.lock();
        if fresh.len() >= FRESH_MAX {
            // Those of refused writes are collected by their age then.
            fresh.clear();
        }
        fresh.insert((session, digest), touched);
    }

    /// Notes that this server touched a blob, which stays its own to remove if it was.
    fn renew(&self, session: SessionId, digest: Digest, touched: i64) {
        self.0.lock().entry((session, digest)).and_modify(|at| *at = touched);
    }

    fn take(&self, session: SessionId, digest: Digest) -> Option<i64> {
        self.0.lock().remove(&(session, digest))
    }
}

/// A blob on its way in: its chunks are stored, and belong to no session.
struct Chunks {
    connections: Arc<Connections>,
    fresh: Fresh,
    session: SessionId,
    content: Uuid,
    chunks: i64,
    bytes: i64,
    /// Bytes of the next chunk.
    rest: Vec<u8>,
    is_kept: bool,
}

impl Chunks {
    fn begin(store: &PostgresStore, session: SessionId) -> Self {
        Self {
            connections: Arc::clone(&store.connections),
            fresh: store.fresh.clone(),
            session,
            content: store.pulse.content(),
            chunks: 0,
            bytes: 0,
            rest: Vec::new(),
            is_kept: false,
        }
    }

    /// Stores the next chunk.
    async fn store(&mut self, client: &Client, chunk: &[u8]) -> Result<(), StoreError> {
        let store = statement! {
            "INSERT INTO blob_chunk (session, content, chunk, bytes) \
             VALUES ({session}, {content}, {number}, {chunk})",
            session = self.session.0, content = self.content, number = self.chunks, chunk
        };
        store.execute(client).await?;
        self.chunks += 1;
        self.bytes += i64::try_from(chunk.len()).unwrap_or(i64::MAX);
        Ok(())
    }

    fn add_all(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.rest.extend_from_slice(bytes);
        if self.rest.len() < CHUNK_BYTES {
            return Ok(());
        }
        let connections = Arc::clone(&self.connections);
        connections.read(async |client| {
            let rest = std::mem::take(&mut self.rest);
            let whole = rest.len() - rest.len() % CHUNK_BYTES;
            let (chunks, left) = rest.split_at(whole);
            for chunk in chunks.chunks(CHUNK_BYTES) {
                self.store(&client, chunk).await?;
            }
            self.rest = left.to_vec();
            Ok(())
        })
    }

    /// Gives the chunks to the session; those of a blob that it has already are deleted.
    fn give(&mut self, digest: Digest) -> Result<(), StoreError> {
        let connections = Arc::clone(&self.connections);
        connections.read(async |client| {
            if !self.rest.is_empty() {
                let rest = std::mem::take(&mut self.rest);
                self.store(&client, &rest).await?;
            }
            let bytes = digest.0.as_slice();
            let give = statement! {
                "INSERT INTO blob (session, digest, content, bytes, touched_at) \
                 VALUES ({session}, {digest}, {content}, {bytes}, {NOW_MS}) \
                 ON CONFLICT (session, digest) DO UPDATE SET touched_at = excluded.touched_at \
                 RETURNING content, touched_at",
                session = self.session.0, digest = bytes, content = self.content, bytes = self.bytes
            };
            let row = give.row(&client).await?;
            self.is_kept = row.try_get::<_, Uuid>(0).map_err(failed)? == self.content;
            let touched = row.try_get(1).map_err(failed)?;
            if self.is_kept {
                self.fresh.add(self.session, digest, touched);
            } else {
                self.fresh.renew(self.session, digest, touched);
            }
            Ok(())
        })
    }
}

impl BlobDraft for Chunks {
    fn add(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.add_all(bytes)
    }

    fn keep(mut self: Box<Self>, digest: Digest) -> Result<(), StoreError> {
        self.give(digest)
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        if self.is_kept || self.chunks == 0 {
            return;
        }
        let (connections, session, content) =
            (Arc::clone(&self.connections), self.session, self.content);
        self.connections.spawn(async move {
            // The leader deletes what is left.
            if let Ok(client) = connections.reader().await {
                let delete = statement! {
                    "DELETE FROM blob_chunk WHERE session = {session} AND content = {content}",
                    session = session.0, content
                };
                delete.execute(&client).await.ok();
            }
        });
    }
}

/// Makes the session's blob as young as a new one. Returns its time, `None` without such a blob.
async fn touch(
    client: &Client,
    session: SessionId,
    digest: Digest,
) -> Result<Option<i64>, StoreError> {
    let digest = digest.0.as_slice();
    let touch = statement! {
        "UPDATE blob SET touched_at = {NOW_MS} WHERE session = {session} AND digest = {digest} RETURNING touched_at",
        session = session.0, digest
    };
    touch.value_if_any(client).await
}

/// A reader of a blob's bytes, one chunk at a time.
struct Reader {
    connections: Arc<Connections>,
    session: SessionId,
    content: Uuid,
    bytes: usize,
    /// The number of the next chunk.
    next: i64,
    chunk: Vec<u8>,
    /// How much of the chunk was read.
    read: usize,
}

impl Reader {
    fn open(
        connections: &Arc<Connections>,
        session: SessionId,
        digest: Digest,
    ) -> Result<Self, StoreError> {
        let row = connections.read(async |client| {
            let digest = digest.0.as_slice();
            let blob = statement! {
                "SELECT content, bytes FROM blob WHERE session = {session} AND digest = {digest}",
                session = session.0, digest
            };
            blob.row_if_any(&client).await
        })?;
        let row = row.ok_or(StoreError::BlobMissing { session, digest })?;
        let bytes = usize::try_from(row.try_get::<_, i64>(1).map_err(failed)?).unwrap_or_default();
        let content = row.try_get(0).map_err(failed)?;
        let connections = Arc::clone(connections);
        Ok(Self { connections, session, content, bytes, next: 0, chunk: Vec::new(), read: 0 })
    }

    /// Reads the next chunk; an empty one is the end.
    fn advance(&mut self) -> Result<(), StoreError> {
        let chunk = self.connections.read(async |client| {
            let chunk = statement! {
                "SELECT bytes FROM blob_chunk \
                 WHERE session = {session} AND content = {content} AND chunk = {number}",
                session = self.session.0, content = self.content, number = self.next
            };
            chunk.value_if_any(&client).await
        })?;
        self.chunk = chunk.unwrap_or_default();
        (self.next, self.read) = (self.next + 1, 0);
        Ok(())
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.chunk.len() {
            self.advance().map_err(io::Error::other)?;
        }
        let mut rest = self.chunk.get(self.read..).unwrap_or_default();
        let taken = rest.read(buffer)?;
        self.read += taken;
        Ok(taken)
    }
}

async fn link(
    client: &Client,
    from: SessionId,
    to: SessionId,
    digest: Digest,
) -> Result<(), StoreError> {
    if touch(client, to, digest).await?.is_some() {
        return Ok(());
    }
    // The rows of two sessions may be on two servers, so the chunks are copied.
    let bytes = digest.0.as_slice();
    let link = statement! {
        "WITH source AS (SELECT digest, content, bytes FROM blob WHERE session = {from} AND digest = {digest}), \
         chunks AS (INSERT INTO blob_chunk (session, content, chunk, bytes) \
            SELECT {to}, blob_chunk.content, blob_chunk.chunk, blob_chunk.bytes \
            FROM source JOIN blob_chunk ON blob_chunk.session = {from} AND blob_chunk.content = source.content \
            ON CONFLICT DO NOTHING) \
         INSERT INTO blob (session, digest, content, bytes, touched_at) \
         SELECT {to}, digest, content, bytes, {NOW_MS} FROM source \
         ON CONFLICT (session, digest) DO UPDATE SET touched_at = excluded.touched_at",
        from = from.0, to = to.0, digest = bytes
    };
    match link.execute(client).await? {
        0 => Err(StoreError::BlobMissing { session: from, digest }),
        _ => Ok(()),
    }
}

impl BlobStore for PostgresStore {
    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        let touched =
            self.connections.read(async |client| touch(&client, session, digest).await)?;
        if let Some(touched) = touched {
            self.fresh.renew(session, digest, touched);
            return Ok(());
        }
        let mut chunks = Chunks::begin(self, session);
        chunks.add_all(bytes)?;
        chunks.give(digest)
    }

    fn begin_blob(&self, session: SessionId) -> Result<Box<dyn BlobDraft>, StoreError> {
        Ok(Box::new(Chunks::begin(self, session)))
    }

    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let mut reader = Reader::open(&self.connections, session, digest)?;
        let mut bytes = Vec::with_capacity(reader.bytes);
        loop {
            reader.advance()?;
            if reader.chunk.is_empty() {
                break;
            }
            bytes.extend_from_slice(&reader.chunk);
        }
        if Digest::of(&bytes) == digest {
            Ok(bytes)
        } else {
            Err(StoreError::BlobDamaged { session, digest })
        }
    }

    fn open_blob(
        &self,
        session: SessionId,
        digest: Digest,
    ) -> Result<Box<dyn Read + Send>, StoreError> {
        Ok(Box::new(Reader::open(&self.connections, session, digest)?))
    }

    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError> {
        self.connections.read(async |client| {
            for digest in digests {
                link(&client, from, to, digest).await?;
            }
            Ok(())
        })
    }

    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError> {
        // Nobody else has put one that has the time of this server's own put; an append that names it is refused.
        let fresh = self.fresh.take(session, digest);
        if !is_free() {
            return Ok(false);
        }
        self.connections.read(async |client| {
            let age = i64::try_from(AGE_MIN.as_millis()).unwrap_or(i64::MAX);
            let digest = digest.0.as_slice();
            let remove = statement! {
                "WITH gone AS (DELETE FROM blob WHERE session = {session} AND digest = {digest} \
                    AND (touched_at <= {NOW_MS} - {age} OR touched_at = {fresh}) RETURNING session, content), \
                 chunks AS (DELETE FROM blob_chunk USING gone \
                    WHERE blob_chunk.session = gone.session AND blob_chunk.content = gone.content) \
                 SELECT count(*) FROM gone",
                session = session.0, digest, age, fresh
            };
            Ok(remove.value::<i64>(&client).await? > 0)
        })
    }

    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.connections.read(async |mut client| {
            let transaction = client.transaction().await.map_err(failed)?;
            let ids = without_existing(&transaction, sessions).await?;
            for delete in [
                statement!("DELETE FROM blob WHERE session = ANY ({ids})", ids),
                statement!("DELETE FROM blob_chunk WHERE session = ANY ({ids})", ids),
            ] {
                delete.execute(transaction.client()).await?;
            }
            transaction.commit().await.map_err(failed)
        })
    }

    /// Nothing is hidden before it is deleted.
    fn sweep_blobs(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The leader deletes remnants, by their age.
    fn clear_blobs(
        &self,
        _live: &HashSet<SessionId>,
        _go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn blobs_of(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.visit(Some(session), visit)
    }

    fn blobs(
        &self,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.visit(None, visit)
    }
}

impl PostgresStore {
    /// Visits the blobs of a session or of all, page by page.
    fn visit(
        &self,
        session: Option<SessionId>,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let only = session.map(|session| session.0);
        let mut last = (only.unwrap_or_default(), Vec::new());
        loop {
            let page = statement! {
                "SELECT session, digest, bytes, touched_at FROM blob \
                 WHERE ({only}::uuid IS NULL OR session = {only}) AND (session, digest) > ({session}, {digest}) \
                 ORDER BY session, digest LIMIT {max}",
                only, session = last.0, digest = last.1, max = ROWS_AT_ONCE
            };
            let rows: Vec<(Uuid, Vec<u8>, i64, i64)> = self.connections.read(async |client| {
                let rows = page.read(&client, |row| {
                    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
                });
                rows.await
            })?;
            if rows.is_empty() {
                return Ok(());
            }
            for (session, digest, bytes, touched) in rows {
                last = (session, digest.clone());
                let Ok(digest) = digest.try_into() else { continue };
                // Ages are compared with this machine's clock.
                let age = self.pulse.time().0.saturating_sub(touched);
                let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
                let blob = StoredBlob {
                    session: SessionId(session),
                    digest: Digest(digest),
                    bytes: bytes.cast_unsigned(),
                    modified: SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
                };
                if visit(blob).is_break() {
                    return Ok(());
                }
            }
        }
    }
}
