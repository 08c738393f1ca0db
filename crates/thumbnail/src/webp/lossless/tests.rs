//! Tests of lossless streams with few and with very many tables.

use super::*;

/// Writes bits from the lowest of each byte on.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    count: usize,
}

impl Writer {
    fn put(&mut self, number: u32, count: usize) -> &mut Self {
        for place in 0..count {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = u8::try_from(number >> place & 1).unwrap();
            *self.bytes.last_mut().unwrap() |= bit << (self.count % 8);
            self.count += 1;
        }
        self
    }

    /// Writes a code of this one symbol.
    fn single(&mut self, symbol: u32) -> &mut Self {
        self.put(1, 1).put(0, 1).put(1, 1).put(symbol, 8)
    }

    /// Writes a code of eleven symbols: one of each length from 1 to 9, and two of length 10.
    fn deep(&mut self, symbols: usize) -> &mut Self {
        // Lengths 1 to 10 are written in four bits each; so are six symbols that are not used.
        self.put(0, 1).put(15, 4);
        for _ in 0..LENGTH_ORDER.len() - 3 {
            self.put(4, 3);
        }
        self.put(0, 9);
        // The sixteen symbols have codes of one length: a code is the symbol's place among them, highest bit first.
        let symbol = |writer: &mut Self, length: u32| {
            let used: Vec<usize> = LENGTH_ORDER[..16].to_vec();
            let mut sorted = used;
            sorted.sort_unstable();
            let place = sorted.iter().position(|found| *found == length as usize).unwrap();
            for bit in (0..4).rev() {
                writer.put(u32::try_from(place >> bit & 1).unwrap(), 1);
            }
        };
        self.put(1, 1).put(3, 3).put(9, 8);
        for length in 1..=10 {
            symbol(self, length);
        }
        symbol(self, 10);
        assert!(symbols >= 11);
        self
    }
}

fn header(writer: &mut Writer, side: u32) {
    writer.put(0x2f, 8).put(side - 1, 14).put(side - 1, 14).put(0, 4);
}

/// Returns a stream of `groups` groups of deep codes.
fn bomb(groups: u32) -> Vec<u8> {
    let mut writer = Writer::default();
    header(&mut writer, 4);
    // No transforms, no cache, and groups by blocks of four: one block.
    writer.put(0, 1).put(0, 1).put(1, 1).put(0, 3);
    // The image of the groups: no cache, and one pixel that names the last one.
    writer.put(0, 1);
    writer.single((groups - 1) & 255).single((groups - 1) >> 8);
    writer.single(0).single(0).single(0);
    for _ in 0..groups {
        for symbols in ALPHABETS {
            writer.deep(symbols);
        }
    }
    writer.bytes
}

#[test]
fn every_table_that_a_stream_asks_for_counts() {
    let one = 5 * 4096 + GROUP_BYTES;
    assert_eq!(table_bytes(&bomb(1), None), one + GROUP_BYTES);
    let bomb = bomb(1000);
    assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
    assert_eq!(table_bytes(&bomb, None), 1000 * one + GROUP_BYTES);
}

#[test]
fn a_stream_that_ends_early_counts_as_far_as_it_goes() {
    let bomb = bomb(100);
    let whole = table_bytes(&bomb, None);
    let mut last = 0;
    for length in 0..bomb.len() {
        let counted = table_bytes(&bomb[..length], None);
        assert!(counted >= last && counted <= whole, "{length}");
        last = counted;
    }
    assert_eq!(table_bytes(b"", None), 0);
    assert_eq!(table_bytes(b"not one", None), 0);
}

#[test]
fn what_the_decoder_takes_is_read_to_its_end() {
    let mut state = 7_u32;
    for (width, height, colours) in [(1, 1, 1), (90, 40, 2), (200, 100, 40), (257, 129, 256)] {
        let picture = image::RgbaImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let shade = u8::try_from(state / 3 % colours).unwrap();
            image::Rgba([shade, shade / 2, 9, 255 - shade / 3])
        });
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::WebP).unwrap();
        let bytes = bytes.into_inner();
        let at = bytes.windows(4).position(|name| name == b"VP8L").unwrap();
        let mut stream = Stream { bits: Bits::new(&bytes[at + 8..]), table_bytes: 0 };
        assert_eq!(stream.read(None), Some(()), "{width} x {height}");
    }
}
