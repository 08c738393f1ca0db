//! Repair of a copied write-ahead log in which bits were changed.
//!
//! A frame's checksum continues the one before it, so one changed bit ends the log for SQLite. A frame is taken if it
//! follows from the stored checksum before it, or from the correct one. A bad frame is taken only if a later one
//! follows, which proves that it was synced. If one bit repairs it, the bit is changed back; else the rows' checksums
//! judge the page.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::{Checksum, FRAME_HEADER_BYTES, HEADER_BYTES, Order, Salts, salts, share_one, word};

/// The page size of all our databases.
const PAGE_BYTES: usize = 4096;
const PAGE: u32 = 4096;

/// The version of the log's format.
const VERSION: u32 = 3_007_000;

/// The checksummed bytes of a frame's header: its page and the size of the database.
const SUMMED_BYTES: usize = 8;

/// The offsets of a header's and a frame's salts.
const HEADER_SALTS: usize = 16;
const FRAME_SALTS: usize = 8;

/// The offsets of a header's and a frame's checksum.
const HEADER_SUM: usize = 24;
const FRAME_SUM: usize = 16;

/// Makes a log readable up to its last synced frame. Returns the number of frames still damaged.
pub(crate) fn mend(path: &Path) -> io::Result<u64> {
    let log = OpenOptions::new().read(true).write(true).open(path)?;
    let frames = (log.metadata()?.len().saturating_sub(HEADER_BYTES as u64)) / FRAME_BYTES;
    let mut header = [0; HEADER_BYTES];
    if frames == 0 || log.read_exact_at(&mut header, 0).is_err() {
        return Ok(0);
    }
    let chain = Chain::of(&log, &header)?;
    let (broken, last) = chain.clone().look(&log, frames)?;
    let broken = broken + u64::from(!chain.has_header());
    if broken == 0 || last == 0 {
        return Ok(0);
    }
    let damaged = chain.rewrite(&log, &mut header, last)?;
    log.set_len(place(last))?;
    Ok(damaged)
}

const FRAME_BYTES: u64 = (FRAME_HEADER_BYTES + PAGE_BYTES) as u64;

fn place(frame: u64) -> u64 {
    HEADER_BYTES as u64 + frame * FRAME_BYTES
}

fn slice(bytes: &[u8], at: usize, length: usize) -> &[u8] {
    bytes.get(at..at + length).unwrap_or_default()
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes.iter_mut().skip(at).zip(new).for_each(|(byte, new)| *byte = *new);
}

fn put_checksum(bytes: &mut [u8], at: usize, Checksum(one, two): Checksum) {
    put(bytes, at, [one.to_be_bytes(), two.to_be_bytes()].as_flattened());
}

/// The checksums from which the next frame may follow.
#[derive(Clone)]
struct Chain {
    order: Order,
    salts: Salts,
    /// The last frame's stored checksum and its correct one.
    ends: [Checksum; 2],
}

impl Chain {
    /// Begins with the header. If the header is damaged, the byte order and the salts are the first frame's.
    fn of(log: &File, header: &[u8]) -> io::Result<Self> {
        let mut first = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
        log.read_exact_at(&mut first, place(0))?;
        let of_order = |order: Order| {
            let due = order.checksum(Checksum(0, 0), slice(header, 0, HEADER_SUM));
            let ends = [Checksum::stored(header, HEADER_SUM), due];
            let mut chain = Self { order, salts: salts(&first, FRAME_SALTS), ends };
            if chain.has_header() {
                chain.salts = salts(header, HEADER_SALTS);
            }
            chain
        };
        let is_big = word(header, 0) & 1 == 1;
        let (told, other) =
            if is_big { (Order::Big, Order::Little) } else { (Order::Little, Order::Big) };
        let [told, other] = [told, other].map(of_order);
        let follows = |chain: &Self| chain.ends.iter().any(|end| chain.holds(*end, &first));
        Ok(if !follows(&told) && follows(&other) { other } else { told })
    }

    /// Returns true if the header is intact; valid only before the first frame.
    fn has_header(&self) -> bool {
        self.ends[0] == self.ends[1]
    }

    fn checksum(&self, from: Checksum, frame: &[u8]) -> Checksum {
        let head = self.order.checksum(from, slice(frame, 0, SUMMED_BYTES));
        self.order.checksum(head, slice(frame, FRAME_HEADER_BYTES, PAGE_BYTES))
    }

    fn holds(&self, from: Checksum, frame: &[u8]) -> bool {
        self.checksum(from, frame) == Checksum::stored(frame, FRAME_SUM)
    }

    /// Returns the checksum from which a frame follows, if any.
    fn follows(&self, frame: &[u8]) -> Option<Checksum> {
        self.ends.into_iter().find(|end| self.holds(*end, frame))
    }

    fn pass(&mut self, frame: &[u8]) {
        let from = self.follows(frame).unwrap_or(self.ends[0]);
        self.ends = [Checksum::stored(frame, FRAME_SUM), self.checksum(from, frame)];
    }

    fn is_of_log(&self, frame: &[u8]) -> bool {
        salts(frame, FRAME_SALTS) == self.salts
    }

    /// Returns true if a frame of this log, or one of its frames with a changed salt, follows.
    fn continues(&self, frame: &[u8]) -> bool {
        share_one(self.salts, salts(frame, FRAME_SALTS)) && self.follows(frame).is_some()
    }

    /// Returns the number of invalid frames up to the last one that follows, and the number of frames up to there.
    fn look(mut self, log: &File, frames: u64) -> io::Result<(u64, u64)> {
        let mut frame = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
        let (mut broken, mut since, mut last) = (0, 0, 0);
        for at in 0..frames {
            log.read_exact_at(&mut frame, place(at))?;
            let continues = self.continues(&frame);
            since += u64::from(!continues || !self.is_of_log(&frame));
            if continues {
                (last, broken, since) = (at + 1, broken + since, 0);
            } else if !self.is_of_log(&frame) {
                // The rest of an earlier log. Two damaged frames in a row are passed over nevertheless.
                break;
            }
            self.pass(&frame);
        }
        Ok((broken, last))
    }

    /// Rewrites the checksums up to this frame. Returns the number of frames with other damage.
    fn rewrite(mut self, log: &File, header: &mut [u8], last: u64) -> io::Result<u64> {
        for (at, word) in [(0, self.order.magic()), (4, VERSION), (8, PAGE)] {
            put(header, at, &word.to_be_bytes());
        }
        put(header, HEADER_SALTS, &self.salts);
        let mut sum = self.order.checksum(Checksum(0, 0), slice(header, 0, HEADER_SUM));
        put_checksum(header, HEADER_SUM, sum);
        log.write_all_at(header, 0)?;
        let mut frame = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
        let (mut damaged, mut is_doubtful) = (0, false);
        for at in 0..last {
            log.read_exact_at(&mut frame, place(at))?;
            let before = self.clone();
            self.pass(&frame);
            // If the next frame follows from the correct checksum, only the stored one was damaged.
            damaged += u64::from(is_doubtful && !before.holds(before.ends[1], &frame));
            is_doubtful = before.follows(&frame).is_none() && !before.correct(&mut frame);
            put(&mut frame, FRAME_SALTS, &self.salts);
            sum = self.checksum(sum, &frame);
            put_checksum(&mut frame, FRAME_SUM, sum);
            log.write_all_at(&frame, place(at))?;
        }
        Ok(damaged)
    }

    /// Flips back the bit that makes a frame invalid. Returns false if no single bit does.
    fn correct(&self, frame: &mut [u8]) -> bool {
        let summed = (0..SUMMED_BYTES).chain(FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + PAGE_BYTES);
        for at in summed {
            for bit in 0..8 {
                flip(frame, at, bit);
                if self.follows(frame).is_some() {
                    return true;
                }
                flip(frame, at, bit);
            }
        }
        false
    }
}

fn flip(frame: &mut [u8], at: usize, bit: u8) {
    frame.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
}
