//! Scan of SQLite's write-ahead log before SQLite opens it: where the log ends, and how.
//!
//! SQLite stops at the first invalid frame, ignores the rest and overwrites it. A power cut leaves such an end, in a
//! transaction that was never synced. A changed bit leaves one anywhere.
//!
//! A commit at or after the break with another frame behind it proves damage: each commit is synced before the next
//! transaction is written. Frames of one transaction prove nothing, since they reach the disk in any order; nor does a
//! frame whose size may be that of an earlier log.
//!
//! A frame's checksum continues the previous frame's. Beyond a break it is computed from the checksum stored in the
//! previous frame, or from the correct one.
//!
//! ```text
//! header  0 magic, 4 version, 8 page size, 12 number, 16 salts, 24 checksum of 0..24
//! frame   0 page, 4 pages of the database if it commits or else 0, 8 salts, 16 checksum of 0..8 and of the page
//! ```

mod checkpoint;
pub(crate) mod length;
pub(crate) mod repair;

use std::io::{self, Read, Seek, SeekFrom};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The end of a frame's size in its header.
const SIZE_END: u64 = 8;

/// The bytes that a disk writes as a whole.
const SECTOR_BYTES: u64 = 512;

/// The lowest bit is the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// The page size if the header has no valid one.
const PAGE_BYTES: u32 = 4096;

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After the last commit that SQLite reads, or in a killed writer's uncommitted transaction.
    Whole,
    /// In a possibly committed transaction: torn by a power cut, or the last one and damaged.
    Early(Break),
    /// In a synced transaction, since others follow it.
    Damaged(Break),
}

impl End {
    /// Returns the place where the log breaks off, if commits may be missing from there on.
    pub(crate) fn cut(self) -> Option<Break> {
        match self {
            Self::Early(found) | Self::Damaged(found) => Some(found),
            Self::Whole => None,
        }
    }

    pub(crate) fn is_cut(self) -> bool {
        self.cut().is_some()
    }
}

/// The place where a log breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    /// The first invalid frame, from 1; 0 is the header.
    pub(crate) frame: u64,
    /// The number of recognizable commits from there on.
    pub(crate) commits: u64,
}

/// Reads a log to its last byte, frame by frame.
pub(crate) fn end(log: &mut (impl Read + Seek)) -> io::Result<End> {
    let mut bytes = [0; HEADER_BYTES];
    if read_fully(log, &mut bytes)? < HEADER_BYTES {
        return Ok(End::Whole);
    }
    let header = Header(bytes);
    if let Some(scan) = header.scan() {
        return scan.run(log, header.page_bytes());
    }
    // The damaged bit may be the byte order.
    let mut found = End::Whole;
    for order in [Order::Little, Order::Big] {
        log.seek(SeekFrom::Start(bytes.len() as u64))?;
        let end = header.scan_damaged(order).run(log, header.page_bytes())?;
        if matches!(end, End::Damaged(_)) {
            return Ok(end);
        }
        found = end;
    }
    Ok(found)
}

/// Reads until the buffer is full or the log ends. Returns the number of bytes.
fn read_fully(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match log.read(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.copied().map_or(0, u32::from_be_bytes)
}

type Salts = [u8; 8];

fn salts(bytes: &[u8], at: usize) -> Salts {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
}

/// Returns true if one of a frame's two salts is the log's. Salts are in no checksum, so a frame of this log may have a
/// changed one; a frame of an earlier log has two others.
fn share_one(log: Salts, frame: Salts) -> bool {
    let [log, frame] = [&log, &frame].map(|salts| salts.as_chunks::<4>().0);
    log.iter().zip(frame).any(|(one, other)| one == other)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checksum(u32, u32);

impl Checksum {
    fn stored(bytes: &[u8], at: usize) -> Self {
        Self(word(bytes, at), word(bytes, at + 4))
    }
}

/// The byte order of a checksum's words.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn magic(self) -> u32 {
        match self {
            Self::Little => MAGIC,
            Self::Big => MAGIC | 1,
        }
    }

    fn checksum(self, from: Checksum, bytes: &[u8]) -> Checksum {
        let word = match self {
            Self::Little => u32::from_le_bytes,
            Self::Big => u32::from_be_bytes,
        };
        let (pairs, _) = bytes.as_chunks();
        pairs.iter().fold(from, |Checksum(one, two), &[a, b, c, d, e, f, g, h]| {
            let one = one.wrapping_add(word([a, b, c, d])).wrapping_add(two);
            let two = two.wrapping_add(word([e, f, g, h])).wrapping_add(one);
            Checksum(one, two)
        })
    }
}

struct Header([u8; HEADER_BYTES]);

impl Header {
    fn page_bytes(&self) -> usize {
        let told = word(&self.0, 8);
        let sound = told.is_power_of_two() && (512..=65_536).contains(&told);
        usize::try_from(if sound { told } else { PAGE_BYTES }).unwrap_or(0)
    }

    fn stored(&self) -> Checksum {
        Checksum::stored(&self.0, 24)
    }

    fn computed(&self, order: Order) -> Checksum {
        let (summed, _) = self.0.split_at(24);
        order.checksum(Checksum(0, 0), summed)
    }

    /// Begins a scan of the frames, unless the header is damaged.
    fn scan(&self) -> Option<Scan> {
        let magic = word(&self.0, 0);
        let order = [Order::Little, Order::Big].into_iter().find(|order| order.magic() == magic)?;
        let stored = self.stored();
        let scan = Scan::of(order, stored, stored);
        let salts = Some(salts(&self.0, 16));
        (self.computed(order) == stored).then_some(Scan { salts, ..scan })
    }

    /// Begins a scan after a damaged header. The header was synced before the first frame was written, so it was
    /// damaged later.
    fn scan_damaged(&self, order: Order) -> Scan {
        Scan { broken: Some(0), ..Scan::of(order, self.stored(), self.computed(order)) }
    }
}

/// The state of a scan after some frames.
struct Scan {
    order: Order,
    /// The salts of this log's frames; an earlier log has others. If unknown, the first frame's.
    salts: Option<Salts>,
    /// The checksum stored in the last frame.
    stored: Checksum,
    /// The checksum that the last frame should have.
    computed: Checksum,
    frame: u64,
    broken: Option<u64>,
    /// True if the last frame is of this log.
    is_of_log: bool,
    /// True if the last frame is a commit, at or after the break.
    is_commit: bool,
    commits: u64,
    /// The number of this log's frames after the broken one.
    beyond: u64,
    proven: bool,
}

struct Frame<'a> {
    bytes: &'a [u8],
    page: u32,
    size: u32,
    salts: Salts,
    stored: Checksum,
}

impl<'a> Frame<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            page: word(bytes, 0),
            size: word(bytes, 4),
            salts: salts(bytes, 8),
            stored: Checksum::stored(bytes, 16),
        }
    }

    fn checksum(&self, order: Order, from: Checksum, size: u32) -> Checksum {
        let [a, b, c, d] = self.page.to_be_bytes();
        let [e, f, g, h] = size.to_be_bytes();
        let head = order.checksum(from, &[a, b, c, d, e, f, g, h]);
        order.checksum(head, self.bytes.get(FRAME_HEADER_BYTES..).unwrap_or_default())
    }
}

impl Scan {
    /// Creates the state before the first frame.
    fn of(order: Order, stored: Checksum, computed: Checksum) -> Self {
        Self {
            order,
            salts: None,
            stored,
            computed,
            frame: 0,
            broken: None,
            is_of_log: true,
            is_commit: false,
            commits: 0,
            beyond: 0,
            proven: false,
        }
    }

    fn run(mut self, log: &mut impl Read, page_bytes: usize) -> io::Result<End> {
        let mut bytes = vec![0; FRAME_HEADER_BYTES + page_bytes];
        loop {
            let length = read_fully(log, &mut bytes)?;
            if length < FRAME_HEADER_BYTES {
                return Ok(self.end());
            }
            // A killed writer may leave a frame's header without the full page.
            bytes.iter_mut().skip(length).for_each(|byte| *byte = 0);
            self.take(&Frame::of(&bytes));
        }
    }

    fn take(&mut self, frame: &Frame<'_>) {
        self.frame += 1;
        let is_current = *self.salts.get_or_insert(frame.salts) == frame.salts;
        let computed = frame.checksum(self.order, self.stored, frame.size);
        if self.broken.is_none() {
            if is_current && computed == frame.stored && frame.page != 0 {
                self.stored = computed;
                return;
            }
            self.broken = Some(self.frame);
            self.computed = self.stored;
        }
        let follows = computed == frame.stored
            || frame.checksum(self.order, self.computed, frame.size) == frame.stored;
        // One of an earlier log follows where a power cut tore the header of the frame before: new salts, old checksum.
        let has_salt = self.salts.is_some_and(|salts| share_one(salts, frame.salts));
        let is_of_log = is_current || (follows && self.is_of_log && has_salt);
        let is_commit = is_of_log && if follows { frame.size != 0 } else { self.may_commit(frame) };
        let header_broke = self.broken == Some(0) && is_commit;
        self.proven |= is_of_log && follows && (self.is_commit || header_broke);
        self.commits += u64::from(is_commit);
        self.beyond += u64::from(is_of_log && self.broken != Some(self.frame));
        (self.is_of_log, self.is_commit) = (is_of_log, is_commit);
        (self.stored, self.computed) = (frame.stored, computed);
    }

    /// Returns true if a frame that does not follow may have been a commit: by its size, or by its size with one bit
    /// changed.
    fn may_commit(&self, frame: &Frame<'_>) -> bool {
        let follows = |size| frame.checksum(self.order, self.stored, size) == frame.stored;
        (frame.size != 0 && !self.is_size_apart(frame)) || (0..32).any(|bit| follows(1 << bit))
    }

    /// Returns true if a sector ends between the frame's size and its salts. If a power cut tore the header there, the size is
    /// that of an earlier log's frame, which may have been a commit.
    fn is_size_apart(&self, frame: &Frame<'_>) -> bool {
        let begin = HEADER_BYTES as u64 + (self.frame - 1) * frame.bytes.len() as u64;
        (begin + SIZE_END).is_multiple_of(SECTOR_BYTES)
    }

    fn end(self) -> End {
        let Some(frame) = self.broken else { return End::Whole };
        let found = Break { frame, commits: self.commits };
        if self.proven {
            End::Damaged(found)
        } else if self.commits + self.beyond > 0 {
            End::Early(found)
        } else {
            End::Whole
        }
    }
}
