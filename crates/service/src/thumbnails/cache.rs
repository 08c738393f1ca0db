//! Thumbnail cache on disk, `<root>/<session>/<sha256>-<bounds>`: bounded, least recently used first.
//!
//! It may be deleted while the server is down. A file is `bbthumb4`, the kind (0 is PNG, 1 is JPEG), width, height
//! and a CRC-32 (little-endian) over the file's name, these three and the image; then the image. A file is moved into
//! place when it is complete and never synced: a damaged one is detected when read, and made again. So are `bbthumb1`
//! and `bbthumb2`, which other encoders made.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use blackboard_thumbnail::{Bounds, Thumbnail};
use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use super::Key;
use crate::disk_room::has_room;
use blackboard_board::{Digest, SessionId};
use blackboard_owner_files as owner_files;
use blackboard_owner_files::FILE_MODE;

/// The bytes of the disk that the cache may take.
pub const THUMBNAIL_CACHE_BYTES_MAX: u64 = 256 << 20;

const MAGIC: &[u8; 8] = b"bbthumb4";
const HEAD_BYTES: usize = MAGIC.len() + 1 + 4 + 4 + 4;
/// Media types by their number in a file.
const KINDS: [&str; 2] = ["image/png", "image/jpeg"];
/// The part of a file's name without bounds.
const OWN_SIZE: &str = "own";
/// The first letters of the bounds in a file's name: the longer side, pixels, bytes.
const BOUNDS: [char; 3] = ['s', 'p', 'b'];
/// A file takes whole blocks of the disk; so the number of files is bounded too.
const BLOCK_BYTES: u64 = 4096;

pub(super) struct Cache {
    root: PathBuf,
    bytes_max: u64,
    free_bytes_min: u64,
    /// `None` before the first use, since reading the directory takes a step for each file.
    index: OnceLock<Mutex<Index>>,
    /// The next temporary file's number.
    next: AtomicU64,
}

/// The files and the order of their use.
#[derive(Default)]
struct Index {
    files: BTreeMap<Key, (u64, u64)>,
    by_use: BTreeMap<u64, Key>,
    bytes: u64,
    tick: u64,
}

impl Index {
    fn use_it(&mut self, key: Key, bytes: u64) {
        self.remove(key);
        self.tick += 1;
        self.files.insert(key, (self.tick, bytes));
        self.by_use.insert(self.tick, key);
        self.bytes += bytes;
    }

    fn remove(&mut self, key: Key) {
        if let Some((used, bytes)) = self.files.remove(&key) {
            self.by_use.remove(&used);
            self.bytes -= bytes;
        }
    }

    /// Removes the least recently used files until the rest is within the bound.
    fn surplus(&mut self, bytes_max: u64) -> Vec<Key> {
        let mut surplus = Vec::new();
        while self.bytes > bytes_max
            && let Some((_, key)) = self.by_use.first_key_value()
        {
            let key = *key;
            self.remove(key);
            surplus.push(key);
        }
        surplus
    }
}

impl Cache {
    /// A cache in this directory, which is not read yet.
    pub(super) fn in_dir(root: PathBuf, bytes_max: u64, free_bytes_min: u64) -> Self {
        Self { root, bytes_max, free_bytes_min, index: OnceLock::new(), next: AtomicU64::new(0) }
    }

    /// The files, also those of an earlier run; a directory with foreign files is emptied.
    fn index(&self) -> &Mutex<Index> {
        self.index.get_or_init(|| {
            let index = found(&self.root).unwrap_or_else(|error| {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(cache = %self.root.display(), %error, "deleted the thumbnail cache");
                    remove(&self.root);
                }
                Index::default()
            });
            Mutex::new(index)
        })
    }

    /// Removes the thumbnails of all other sessions, perhaps also those of a session created just now.
    pub(super) fn keep(&self, live: &HashSet<SessionId>) {
        let sessions: HashSet<SessionId> =
            self.index().lock().files.keys().map(|(session, ..)| *session).collect();
        sessions.difference(live).for_each(|session| self.forget(*session));
    }

    /// Removes the thumbnails of a session.
    pub(super) fn forget(&self, session: SessionId) {
        let mut index = self.index().lock();
        let first = (session, Digest([0; 32]), Bounds::default());
        let of_it =
            index.files.range(first..).map(|(key, _)| *key).take_while(|key| key.0 == session);
        let keys: Vec<Key> = of_it.collect();
        keys.into_iter().for_each(|key| index.remove(key));
        drop(index);
        remove(&self.root.join(session.to_string()));
    }

    /// Returns a thumbnail, if its file is undamaged.
    pub(super) fn get(&self, key: Key) -> Option<Thumbnail> {
        let (_, bytes) = self.index().lock().files.get(&key).copied()?;
        let path = self.path(key);
        let read = whole(&path, bytes).and_then(|file| read(&name(key), file));
        match &read {
            Some(made) => self.index().lock().use_it(key, charged(made)),
            None => {
                tracing::debug!(file = %path.display(), "a cached thumbnail is damaged; making a new one");
                self.index().lock().remove(key);
                // A directory in its place would keep out the new one.
                remove(&path);
            }
        }
        read
    }

    /// Stores a thumbnail if there is room. A failure is ignored.
    pub(super) fn put(&self, key: Key, made: &Thumbnail) {
        let bytes = charged(made);
        // The disk's reserve stays free.
        let needed = self.free_bytes_min.saturating_add(bytes);
        if bytes > self.bytes_max || !has_room(&self.root, needed) {
            return;
        }
        if let Err(error) = self.write(key, made) {
            tracing::debug!(cache = %self.root.display(), %error, "a thumbnail is not kept");
            return;
        }
        let mut index = self.index().lock();
        index.use_it(key, bytes);
        let surplus = index.surplus(self.bytes_max);
        drop(index);
        for key in surplus {
            remove(&self.path(key));
        }
    }

    fn write(&self, key: Key, made: &Thumbnail) -> io::Result<()> {
        let home = self.root.join(key.0.to_string());
        owner_files::make_dir(&home)?;
        // Each of two writers of the same thumbnail has a temporary file; the second replaces the first.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temporary = home.join(format!("{number}.tmp"));
        let file = OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(&temporary);
        let written = file.and_then(|mut file| {
            file.write_all(&head(&name(key), made))?;
            file.write_all(&made.bytes)?;
            fs::rename(&temporary, self.path(key))
        });
        if written.is_err() {
            remove(&temporary);
        }
        written
    }

    fn path(&self, key: Key) -> PathBuf {
        self.root.join(key.0.to_string()).join(name(key))
    }
}

fn name((_, digest, bounds): Key) -> String {
    if bounds == Bounds::default() {
        return format!("{digest}-{OWN_SIZE}");
    }
    let Bounds { max_px, max_pixels, max_bytes } = bounds;
    let mut name = digest.to_string();
    for (letter, bound) in BOUNDS.into_iter().zip([max_px.map(u64::from), max_pixels, max_bytes]) {
        if let Some(bound) = bound {
            name.push_str(&format!("-{letter}{bound}"));
        }
    }
    name
}

fn charged(made: &Thumbnail) -> u64 {
    (HEAD_BYTES as u64 + made.bytes.len() as u64).next_multiple_of(BLOCK_BYTES)
}

fn head(name: &str, made: &Thumbnail) -> Vec<u8> {
    let kind = u8::from(made.media_type == "image/jpeg");
    let mut about = vec![kind];
    about.extend(made.size.0.to_le_bytes());
    about.extend(made.size.1.to_le_bytes());
    let sum = checksum(name, &about, &made.bytes);
    [MAGIC.as_slice(), &about, &sum.to_le_bytes()].concat()
}

fn checksum(name: &str, about: &[u8], image: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(about);
    hasher.update(image);
    hasher.finalize()
}

/// Reads a whole file, if it is one and has the expected length.
fn whole(path: &Path, bytes: u64) -> Option<Vec<u8>> {
    let about = fs::symlink_metadata(path).ok()?;
    let is_as_put = about.is_file() && about.len().next_multiple_of(BLOCK_BYTES) == bytes;
    is_as_put.then(|| fs::read(path).ok()).flatten()
}

fn read(name: &str, file: Vec<u8>) -> Option<Thumbnail> {
    let file = Bytes::from(file);
    let (head, image) = (file.get(..HEAD_BYTES)?, file.slice(HEAD_BYTES..));
    let about = head.strip_prefix(MAGIC)?;
    let (about, sum) = about.split_at_checked(9)?;
    let &[kind, w0, w1, w2, w3, h0, h1, h2, h3] = about else { return None };
    if checksum(name, about, &image).to_le_bytes().as_slice() != sum {
        return None;
    }
    let media_type = KINDS.get(usize::from(kind)).copied()?;
    let size = (u32::from_le_bytes([w0, w1, w2, w3]), u32::from_le_bytes([h0, h1, h2, h3]));
    Some(Thumbnail { media_type, bytes: image, size })
}

/// Returns the files in the directory in the order of their writing.
fn found(root: &Path) -> io::Result<Index> {
    let mut files: Vec<(SystemTime, Key, u64)> = Vec::new();
    for home in fs::read_dir(root)? {
        let home = home?.path();
        let session = session_of(&home).ok_or(io::ErrorKind::InvalidData)?;
        for file in fs::read_dir(&home)? {
            let file = file?;
            let key = key_of(session, &file.path()).ok_or(io::ErrorKind::InvalidData)?;
            let about = file.metadata()?;
            files.push((about.modified()?, key, about.len().next_multiple_of(BLOCK_BYTES)));
        }
    }
    files.sort_by_key(|(written, ..)| *written);
    let mut index = Index::default();
    for (_, key, bytes) in files {
        index.use_it(key, bytes);
    }
    Ok(index)
}

fn session_of(home: &Path) -> Option<SessionId> {
    let name = home.file_name()?.to_str()?;
    let session = SessionId(Uuid::try_parse(name).ok()?);
    (session.to_string() == name).then_some(session)
}

fn key_of(session: SessionId, path: &Path) -> Option<Key> {
    let text = path.file_name()?.to_str()?;
    let (digest, parts) = text.split_once('-')?;
    let mut bounds = Bounds::default();
    if parts != OWN_SIZE {
        for part in parts.split('-') {
            let [side, pixels, bytes] = BOUNDS.map(|letter| part.strip_prefix(letter));
            match (side, pixels, bytes) {
                (Some(side), ..) => bounds.max_px = Some(side.parse().ok()?),
                (_, Some(pixels), _) => bounds.max_pixels = Some(pixels.parse().ok()?),
                (.., bytes) => bounds.max_bytes = Some(bytes?.parse().ok()?),
            }
        }
    }
    let key = (session, Digest::from_hex(digest)?, bounds);
    (name(key) == text).then_some(key)
}

fn remove(path: &Path) {
    if let Err(error) = owner_files::remove(path) {
        tracing::warn!(path = %path.display(), %error, "a part of the thumbnail cache could not be deleted");
    }
}

#[cfg(test)]
mod tests;
