//! Header of a baseline JPEG with a single scan, as cameras and screens write it.

use super::block::SIDE;
use super::huffman::Table;
use super::segments::segments;

/// The second bytes of the markers that matter.
const BASELINE: u8 = 0xc0;
const EXTENDED: u8 = 0xc1;
const HUFFMAN: u8 = 0xc4;
const QUANTIZERS: u8 = 0xdb;
const RESTARTS: u8 = 0xdd;
const JFIF: u8 = 0xe0;
const ADOBE: u8 = 0xee;

/// The bits of a sample.
const PRECISION: u8 = 8;
/// The blocks of a unit, at most.
const UNIT_BLOCKS_MAX: usize = 10;
/// The number of tables of each sort.
const TABLES: usize = 4;

/// A component of the colours.
pub(super) struct Component {
    id: u8,
    /// Its blocks in a unit, across and down.
    pub(super) across: usize,
    pub(super) down: usize,
    quantizer: u8,
    /// Factors of the coefficients, in stored order.
    pub(super) factors: [f32; SIDE * SIDE],
    /// The indexes of its tables.
    dc: u8,
    ac: u8,
}

/// The parameters of decoding.
pub(super) struct Header<'a> {
    /// Width and height.
    pub(super) size: (u32, u32),
    /// One for grey, three for colours.
    pub(super) components: Vec<Component>,
    /// Whether the components are red, green and blue.
    pub(super) is_rgb: bool,
    /// The number of units between restarts, or zero.
    pub(super) restart: u16,
    /// The data of the scan.
    pub(super) data: &'a [u8],
    definitions: [Option<&'a [u8]>; 2 * TABLES],
}

impl<'a> Header<'a> {
    /// Reads the segments up to the scan. `None` for any other JPEG than a baseline one of a single scan.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut header = Self {
            size: (0, 0),
            components: Vec::new(),
            is_rgb: false,
            restart: 0,
            data: &[],
            definitions: [None; 2 * TABLES],
        };
        let (mut quantizers, mut transform, mut is_jfif) = ([None; TABLES], None, false);
        for segment in segments(bytes) {
            let body = segment.body;
            match segment.marker {
                BASELINE | EXTENDED if header.components.is_empty() => header.frame(body)?,
                // Other frames: progressive, lossless, or with arithmetic codes.
                0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcf => return None,
                HUFFMAN => header.huffman(body)?,
                QUANTIZERS => read_quantizers(body, &mut quantizers)?,
                RESTARTS => header.restart = u16::from_be_bytes(*body.first_chunk()?),
                JFIF => is_jfif |= body.starts_with(b"JFIF\0"),
                ADOBE if body.starts_with(b"Adobe") => transform = body.get(11).copied(),
                super::SCAN => {
                    header.scan(body)?;
                    header.data = segment.after;
                }
                _ => {}
            }
        }
        for component in &mut header.components {
            component.factors = (*quantizers.get(usize::from(component.quantizer))?)?;
        }
        let ids: Vec<u8> = header.components.iter().map(|component| component.id).collect();
        header.is_rgb = transform.map_or(!is_jfif && ids == *b"RGB", |transform| transform == 0);
        (!header.data.is_empty()).then_some(header)
    }

    fn frame(&mut self, body: &[u8]) -> Option<()> {
        let [PRECISION, h0, h1, w0, w1, count, rest @ ..] = body else { return None };
        self.size = (u16::from_be_bytes([*w0, *w1]).into(), u16::from_be_bytes([*h0, *h1]).into());
        for [id, sides, quantizer] in rest.as_chunks::<3>().0.iter().take(usize::from(*count)) {
            let (across, down) = (usize::from(sides >> 4), usize::from(sides & 15));
            if !(1..=4).contains(&across) || !(1..=4).contains(&down) {
                return None;
            }
            self.components.push(Component {
                id: *id,
                across,
                down,
                quantizer: *quantizer,
                factors: [0.0; SIDE * SIDE],
                dc: 0,
                ac: 0,
            });
        }
        if let [grey] = self.components.as_mut_slice() {
            // A unit of a single component is a block, whatever it says.
            (grey.across, grey.down) = (1, 1);
        }
        let blocks: usize = self.components.iter().map(|c| c.across * c.down).sum();
        (matches!(self.components.len(), 1 | 3) && blocks <= UNIT_BLOCKS_MAX).then_some(())
    }

    /// Notes the definitions. Tables are built of the last ones only.
    fn huffman(&mut self, mut body: &'a [u8]) -> Option<()> {
        while let [class_and_index, rest @ ..] = body {
            let (class, index) = (usize::from(class_and_index >> 4), class_and_index & 15);
            let symbols: usize = rest.first_chunk::<16>()?.iter().map(|n| usize::from(*n)).sum();
            let (definition, after) = rest.split_at_checked(16 + symbols)?;
            let place = class * TABLES + usize::from(index);
            *self.definitions.get_mut(place).filter(|_| usize::from(index) < TABLES)? =
                Some(definition);
            body = after;
        }
        Some(())
    }

    /// Reads which tables each component uses. The scan has all components.
    fn scan(&mut self, body: &[u8]) -> Option<()> {
        let [count, rest @ ..] = body else { return None };
        if self.components.is_empty() || usize::from(*count) != self.components.len() {
            return None;
        }
        let tables = rest.as_chunks::<2>().0.iter().take(usize::from(*count));
        for (component, [id, tables]) in self.components.iter_mut().zip(tables) {
            if component.id != *id {
                return None;
            }
            (component.dc, component.ac) = (tables >> 4, tables & 15);
        }
        Some(())
    }

    /// Builds the tables of a component: of the means, and of the other coefficients.
    pub(super) fn tables(&self, component: &Component) -> Option<(Table, Table)> {
        let table = |class: usize, index: u8| {
            let place = class * TABLES + usize::from(index).min(TABLES - 1);
            Table::of((*self.definitions.get(place)?)?)
        };
        Some((table(0, component.dc)?, table(1, component.ac)?))
    }
}

/// Reads tables of factors, of one or two bytes each.
fn read_quantizers(
    mut body: &[u8],
    quantizers: &mut [Option<[f32; SIDE * SIDE]>; TABLES],
) -> Option<()> {
    while let [width_and_index, rest @ ..] = body {
        let mut factors = [0.0; SIDE * SIDE];
        let after = if width_and_index >> 4 == 0 {
            let (read, after) = rest.split_first_chunk::<{ SIDE * SIDE }>()?;
            factors.iter_mut().zip(read).for_each(|(factor, read)| *factor = f32::from(*read));
            after
        } else {
            let (read, after) = rest.split_first_chunk::<{ 2 * SIDE * SIDE }>()?;
            let read = read.as_chunks::<2>().0;
            let pairs = factors.iter_mut().zip(read);
            pairs.for_each(|(factor, read)| *factor = f32::from(u16::from_be_bytes(*read)));
            after
        };
        *quantizers.get_mut(usize::from(width_and_index & 15))? = Some(factors);
        body = after;
    }
    Some(())
}
