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

const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

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
        let sql = "INSERT INTO blob_chunk (session, content, chunk, bytes) VALUES ($1, $2, $3, $4)";
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&self.session.0, &self.content, &self.chunks, &chunk];
        client.execute(sql, &parameters).await.map_err(failed)?;
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
            let sql = format!(
                "INSERT INTO blob (session, digest, content, bytes, touched_at) \
                 VALUES ($1, $2, $3, $4, {NOW_MS}) \
                 ON CONFLICT (session, digest) DO UPDATE SET touched_at = excluded.touched_at \
                 RETURNING content, touched_at"
            );
            let bytes = digest.0.as_slice();
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&self.session.0, &bytes, &self.content, &self.bytes];
            let row = client.query_one(&sql, &parameters).await.map_err(failed)?;
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
                let sql = "DELETE FROM blob_chunk WHERE session = $1 AND content = $2";
                client.execute(sql, &[&session.0, &content]).await.ok();
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
    let sql = format!(
        "UPDATE blob SET touched_at = {NOW_MS} WHERE session = $1 AND digest = $2 RETURNING touched_at"
    );
    let row = client.query_opt(&sql, &[&session.0, &digest.0.as_slice()]).await.map_err(failed)?;
    row.map(|row| row.try_get(0)).transpose().map_err(failed)
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
            let sql = "SELECT content, bytes FROM blob WHERE session = $1 AND digest = $2";
            let row = client.query_opt(sql, &[&session.0, &digest.0.as_slice()]).await;
            row.map_err(failed)
        })?;
        let row = row.ok_or(StoreError::BlobMissing { session, digest })?;
        let bytes = usize::try_from(row.try_get::<_, i64>(1).map_err(failed)?).unwrap_or_default();
        let content = row.try_get(0).map_err(failed)?;
        let connections = Arc::clone(connections);
        Ok(Self { connections, session, content, bytes, next: 0, chunk: Vec::new(), read: 0 })
    }

    /// Reads the next chunk; an empty one is the end.
    fn advance(&mut self) -> Result<(), StoreError> {
        let row = self.connections.read(async |client| {
            let sql =
                "SELECT bytes FROM blob_chunk WHERE session = $1 AND content = $2 AND chunk = $3";
            let row = client.query_opt(sql, &[&self.session.0, &self.content, &self.next]).await;
            row.map_err(failed)
        })?;
        self.chunk = row.map(|row| row.try_get(0)).transpose().map_err(failed)?.unwrap_or_default();
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
    let sql = format!(
        "WITH source AS (SELECT digest, content, bytes FROM blob WHERE session = $1 AND digest = $3), \
         chunks AS (INSERT INTO blob_chunk (session, content, chunk, bytes) \
            SELECT $2, blob_chunk.content, blob_chunk.chunk, blob_chunk.bytes \
            FROM source JOIN blob_chunk ON blob_chunk.session = $1 AND blob_chunk.content = source.content \
            ON CONFLICT DO NOTHING) \
         INSERT INTO blob (session, digest, content, bytes, touched_at) \
         SELECT $2, digest, content, bytes, {NOW_MS} FROM source \
         ON CONFLICT (session, digest) DO UPDATE SET touched_at = excluded.touched_at"
    );
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&from.0, &to.0, &digest.0.as_slice()];
    match client.execute(&sql, &parameters).await.map_err(failed)? {
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
            let sql = format!(
                "WITH gone AS (DELETE FROM blob WHERE session = $1 AND digest = $2 \
                    AND (touched_at <= {NOW_MS} - $3 OR touched_at = $4) RETURNING session, content), \
                 chunks AS (DELETE FROM blob_chunk USING gone \
                    WHERE blob_chunk.session = gone.session AND blob_chunk.content = gone.content) \
                 SELECT count(*) FROM gone"
            );
            let age = i64::try_from(AGE_MIN.as_millis()).unwrap_or(i64::MAX);
            let digest = digest.0.as_slice();
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&session.0, &digest, &age, &fresh];
            let row = client.query_one(&sql, &parameters).await.map_err(failed)?;
            Ok(row.try_get::<_, i64>(0).map_err(failed)? > 0)
        })
    }

    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.connections.read(async |mut client| {
            let transaction = client.transaction().await.map_err(failed)?;
            let ids = without_existing(&transaction, sessions).await?;
            for table in ["blob", "blob_chunk"] {
                let sql = format!("DELETE FROM {table} WHERE session = ANY ($1)");
                transaction.execute(&sql, &[&ids]).await.map_err(failed)?;
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
        let sql = "SELECT session, digest, bytes, touched_at FROM blob \
            WHERE ($1::uuid IS NULL OR session = $1) AND (session, digest) > ($2, $3) \
            ORDER BY session, digest LIMIT $4";
        let only = session.map(|session| session.0);
        let mut last = (only.unwrap_or_default(), Vec::new());
        loop {
            let rows = self.connections.read(async |client| {
                let rows = client.query(sql, &[&only, &last.0, &last.1, &ROWS_AT_ONCE]).await;
                rows.map_err(failed)
            })?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                let read = || -> Result<(Uuid, Vec<u8>, i64, i64), tokio_postgres::Error> {
                    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
                };
                let (session, digest, bytes, touched) = read().map_err(failed)?;
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
