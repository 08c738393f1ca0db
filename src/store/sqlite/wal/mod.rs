//! SQLite's write-ahead log read as bytes, before SQLite opens it: where it ends, and how.
//!
//! SQLite stops at the first frame that does not hold, takes what follows for nothing, and writes over it. A power
//! cut leaves such an end, in a transaction that was never synced. So does a changed bit, anywhere.
//!
//! Proof of damage is a commit from the break on which another frame follows: each commit is synced before the next
//! transaction is written. The frames of one transaction prove nothing, since they reach the disk in any order.
//!
//! A frame's checksum goes on from that of the frame before it. Beyond a break it is computed from what is stored
//! in that frame, or from what that frame should have stored.
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

/// The lowest bit says which byte order the checksums have.
const MAGIC: u32 = 0x377f_0682;

/// The page size where the header does not tell it.
const PAGE_BYTES: u32 = 4096;

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the last commit that SQLite reads, or in a transaction that a killed writer had not committed.
    Whole,
    /// In a transaction that may have been committed: torn by a power cut, or the last one and damaged.
    Early(Break),
    /// In a transaction that was synced, since others follow it.
    Damaged(Break),
}

/// Where a log breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    /// The first frame that does not hold, from 1; 0 is the header.
    pub(crate) frame: u64,
    /// How many commits can be told from there on.
    pub(crate) commits: u64,
}

/// Reads a log to its last byte, a frame at a time.
pub(crate) fn end(log: &mut (impl Read + Seek)) -> io::Result<End> {
    let mut bytes = [0; HEADER_BYTES];
    if read_fully(log, &mut bytes)? < HEADER_BYTES {
        return Ok(End::Whole);
    }
    let header = Header(bytes);
    if let Some(scan) = header.scan() {
        return scan.run(log, header.page_bytes());
    }
    // The damage may be in the bit that tells the byte order.
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

/// Reads until the buffer is full or the log at its end; how much.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checksum(u32, u32);

impl Checksum {
    fn stored(bytes: &[u8], at: usize) -> Self {
        Self(word(bytes, at), word(bytes, at + 4))
    }
}

/// How a checksum takes the bytes of a word.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
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

    /// How the frames are read, unless the header is not as SQLite wrote it.
    fn scan(&self) -> Option<Scan> {
        let order = match word(&self.0, 0) ^ MAGIC {
            0 => Order::Little,
            1 => Order::Big,
            _ => return None,
        };
        let stored = self.stored();
        let scan = Scan::of(order, stored, stored);
        let salts = Some(salts(&self.0, 16));
        (self.computed(order) == stored).then_some(Scan { salts, ..scan })
    }

    /// The same where it is not: the header was synced before the first frame was written, so it broke later.
    fn scan_damaged(&self, order: Order) -> Scan {
        Scan { broken: Some(0), ..Scan::of(order, self.stored(), self.computed(order)) }
    }
}

/// The frames up to one of them.
struct Scan {
    order: Order,
    /// Those of this log's frames; frames of an earlier one have others. Unknown, they are the first frame's.
    salts: Option<Salts>,
    /// What is stored in the last frame.
    stored: Checksum,
    /// What should be.
    computed: Checksum,
    frame: u64,
    broken: Option<u64>,
    /// Whether the last frame is of this log.
    is_of_log: bool,
    /// Whether it is a commit, of those from the break on.
    is_commit: bool,
    commits: u64,
    /// How many frames of this log are behind the broken one.
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
    /// Before the first frame.
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
            // A killed writer leaves the header of a frame without all of its page.
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
        // The salts are in no checksum: a frame that follows is of this log though its salts are changed.
        let is_of_log = is_current || (follows && self.is_of_log);
        let is_commit = is_of_log && if follows { frame.size != 0 } else { self.may_commit(frame) };
        let header_broke = self.broken == Some(0) && is_commit;
        self.proven |= is_of_log && follows && (self.is_commit || header_broke);
        self.commits += u64::from(is_commit);
        self.beyond += u64::from(is_of_log && self.broken != Some(self.frame));
        (self.is_of_log, self.is_commit) = (is_of_log, is_commit);
        (self.stored, self.computed) = (frame.stored, computed);
    }

    /// Whether a frame that does not follow may have been written as a commit: as it says, or if one bit of its
    /// size was changed.
    fn may_commit(&self, frame: &Frame<'_>) -> bool {
        let follows = |size| frame.checksum(self.order, self.stored, size) == frame.stored;
        frame.size != 0 || (0..32).any(|bit| follows(1 << bit))
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
