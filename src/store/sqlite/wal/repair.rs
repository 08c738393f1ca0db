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

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The lowest bit is the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// The page size of all our databases.
const PAGE_BYTES: usize = 4096;
const PAGE: u32 = 4096;

/// The checksummed bytes of a frame's header: its page and the size of the database.
const SUMMED_BYTES: usize = 8;

/// The offsets of a header's and a frame's salts.
const HEADER_SALTS: usize = 16;
const FRAME_SALTS: usize = 8;
const SALTS_BYTES: usize = 8;

/// The offsets of a header's and a frame's checksum.
const HEADER_SUM: usize = 24;
const FRAME_SUM: usize = 16;

type Sum = (u32, u32);

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

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_be_bytes)
}

fn stored(bytes: &[u8], at: usize) -> Sum {
    (word(bytes, at), word(bytes, at + 4))
}

fn slice(bytes: &[u8], at: usize, length: usize) -> &[u8] {
    bytes.get(at..at + length).unwrap_or_default()
}

fn put(bytes: &mut [u8], at: usize, sum: Sum) {
    let words = [sum.0.to_be_bytes(), sum.1.to_be_bytes()];
    for (byte, new) in bytes.iter_mut().skip(at).zip(words.as_flattened()) {
        *byte = *new;
    }
}

/// The checksums from which the next frame may follow.
#[derive(Clone)]
struct Chain {
    big: bool,
    salts: [u8; SALTS_BYTES],
    /// The last frame's stored checksum and its correct one.
    ends: [Sum; 2],
}

impl Chain {
    /// Begins with the header. If the header is damaged, the byte order and the salts are the first frame's.
    fn of(log: &File, header: &[u8]) -> io::Result<Self> {
        let mut first = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
        log.read_exact_at(&mut first, place(0))?;
        let salts = |bytes, at| slice(bytes, at, SALTS_BYTES).try_into().unwrap_or_default();
        let of_order = |big| {
            let mut chain = Self { big, salts: salts(&first, FRAME_SALTS), ends: [(0, 0); 2] };
            let due = chain.sum((0, 0), slice(header, 0, HEADER_SUM));
            chain.ends = [stored(header, HEADER_SUM), due];
            if chain.has_header() {
                chain.salts = salts(header, HEADER_SALTS);
            }
            chain
        };
        let told = of_order(word(header, 0) & 1 == 1);
        let other = of_order(!told.big);
        let follows = |chain: &Self| chain.ends.iter().any(|end| chain.holds(*end, &first));
        Ok(if !follows(&told) && follows(&other) { other } else { told })
    }

    /// Returns true if the header is intact; valid only before the first frame.
    fn has_header(&self) -> bool {
        self.ends[0] == self.ends[1]
    }

    fn sum(&self, from: Sum, bytes: &[u8]) -> Sum {
        let read = if self.big { u32::from_be_bytes } else { u32::from_le_bytes };
        let (pairs, _) = bytes.as_chunks();
        pairs.iter().fold(from, |(one, two), &[a, b, c, d, e, f, g, h]| {
            let one = one.wrapping_add(read([a, b, c, d])).wrapping_add(two);
            (one, two.wrapping_add(read([e, f, g, h])).wrapping_add(one))
        })
    }

    fn sum_of(&self, from: Sum, frame: &[u8]) -> Sum {
        let head = self.sum(from, slice(frame, 0, SUMMED_BYTES));
        self.sum(head, slice(frame, FRAME_HEADER_BYTES, PAGE_BYTES))
    }

    fn holds(&self, from: Sum, frame: &[u8]) -> bool {
        self.sum_of(from, frame) == stored(frame, FRAME_SUM)
    }

    /// Returns the checksum from which a frame follows, if any.
    fn follows(&self, frame: &[u8]) -> Option<Sum> {
        self.ends.into_iter().find(|end| self.holds(*end, frame))
    }

    fn pass(&mut self, frame: &[u8]) {
        let from = self.follows(frame).unwrap_or(self.ends[0]);
        self.ends = [stored(frame, FRAME_SUM), self.sum_of(from, frame)];
    }

    fn is_of_log(&self, frame: &[u8]) -> bool {
        slice(frame, FRAME_SALTS, SALTS_BYTES) == self.salts
    }

    /// Returns the number of invalid frames up to the last one that follows, and the number of frames up to there.
    fn look(mut self, log: &File, frames: u64) -> io::Result<(u64, u64)> {
        let mut frame = vec![0; FRAME_HEADER_BYTES + PAGE_BYTES];
        let (mut broken, mut since, mut last) = (0, 0, 0);
        for at in 0..frames {
            log.read_exact_at(&mut frame, place(at))?;
            let follows = self.follows(&frame).is_some();
            since += u64::from(!follows || !self.is_of_log(&frame));
            if follows {
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
        let magic = MAGIC | u32::from(self.big);
        let words = [(0, magic), (4, 3_007_000), (8, PAGE)];
        for (at, word) in words {
            header.iter_mut().skip(at).zip(word.to_be_bytes()).for_each(|(byte, new)| *byte = new);
        }
        let salts = header.iter_mut().skip(HEADER_SALTS).zip(self.salts);
        salts.for_each(|(byte, salt)| *byte = salt);
        let mut sum = self.sum((0, 0), slice(header, 0, HEADER_SUM));
        put(header, HEADER_SUM, sum);
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
            frame
                .iter_mut()
                .skip(FRAME_SALTS)
                .zip(self.salts)
                .for_each(|(byte, salt)| *byte = salt);
            sum = self.sum_of(sum, &frame);
            put(&mut frame, FRAME_SUM, sum);
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
