//! Sizes of the allocator's blocks, and divisions of texts that fill them.
//!
//! The allocator has four block sizes between a power of two and the next, so a text of any length leaves a tenth of
//! its block empty on average. A text that may be divided anywhere between entries need not.

use std::ops::Range;

/// The smallest block.
const BLOCK_MIN: usize = 16;

/// A piece is good if it leaves at most so many thousandths of its block empty.
const EMPTY_MAX: usize = 30;

/// The places of a node of imbl's ordered trees, which has room for all of them.
const NODE_PLACES: usize = 16;

/// The memory of such a node besides its places.
const NODE_ITSELF: usize = 16;

/// The maximum number of pieces, since each piece has a cost of its own.
const PIECES_MAX: usize = 4;

/// Returns the size of the block that the allocator takes for so many bytes.
#[must_use]
pub(crate) const fn block(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    if bytes <= BLOCK_MIN {
        return BLOCK_MIN;
    }
    // Four sizes between each two powers of two, in steps of at least 16.
    let step = match (bytes - 1).ilog2().checked_sub(2) {
        Some(log) if log > 4 => 1 << log,
        Some(_) | None => BLOCK_MIN,
    };
    bytes.div_ceil(step) * step
}

/// Returns the memory of a value of so many bytes behind an `Arc`, which has two counts beside it.
#[must_use]
pub const fn shared(bytes: usize) -> usize {
    block(bytes + 2 * size_of::<usize>())
}

/// Returns the memory of an entry of so many bytes in a hash table, which is between half and fully loaded.
#[must_use]
pub const fn hashed(bytes: usize) -> usize {
    (bytes + 1) * 3 / 2
}

/// Returns the memory of a key of so many bytes in an ordered tree, the nodes of which are two thirds full.
#[must_use]
pub const fn sorted(bytes: usize) -> usize {
    bytes * 3 / 2
}

/// Returns the memory of an ordered tree with so many members of `bytes` each: one node, or nodes that are two thirds full.
#[must_use]
pub(crate) const fn tree(members: usize, bytes: usize) -> usize {
    match members {
        0 => 0,
        1..=NODE_PLACES => shared(NODE_PLACES * bytes + NODE_ITSELF),
        _ => sorted(bytes).saturating_mul(members),
    }
}

/// Returns the memory of so many bytes in pieces that fill their blocks.
#[must_use]
pub(crate) const fn filled(bytes: usize) -> usize {
    bytes.saturating_add(bytes.saturating_mul(EMPTY_MAX) / 1_000)
}

/// Divides texts with these ends into at most four runs that fill their blocks.
pub(super) fn pieces(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    let end = |count: usize| {
        let end = count.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or_default();
        usize::try_from(end).unwrap_or(usize::MAX)
    };
    (1..=PIECES_MAX).map_while(move |piece| {
        let start = from;
        // The empty part of the block, in thousandths.
        let empty = |until: &usize| {
            let bytes = (end(*until) - end(start)).max(1);
            (block(bytes) - bytes).saturating_mul(1_000) / bytes
        };
        let counts = || (start + 1..=ends.len()).rev();
        let full = counts().find(|until| empty(until) <= EMPTY_MAX);
        let best = full.or_else(|| counts().min_by_key(empty)).filter(|_| piece < PIECES_MAX);
        from = best.unwrap_or(ends.len());
        (start < from).then_some(start..from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_allocators() {
        let sizes = [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (100, 112),
            (113, 128),
            (129, 160),
            (161, 192),
            (800, 896),
            (897, 1_024),
            (1_025, 1_280),
            (14_337, 16_384),
            (16_385, 20_480),
            (65_472, 65_536),
            (65_537, 81_920),
        ];
        for (bytes, expected) in sizes {
            assert_eq!(block(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn pieces_are_all_in_order_and_leave_little_empty() {
        for count in 1..200 {
            let ends: Vec<u32> = (1..=count).map(|n| n * 863).collect();
            let pieces: Vec<_> = pieces(&ends).collect();
            assert!(pieces.len() <= PIECES_MAX);
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            let all: Vec<_> = pieces.iter().cloned().flatten().collect();
            assert_eq!(all, (0..ends.len()).collect::<Vec<_>>());
            let taken: usize = pieces.iter().map(|piece| block(piece.len() * 863)).sum();
            let bytes = usize::try_from(count).unwrap() * 863;
            assert!(taken <= bytes + bytes / 16, "{taken} for {bytes}");
        }
    }
}
