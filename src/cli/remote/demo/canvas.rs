//! A picture of rectangles and texts, and its PNG.

use png::{BitDepth, ColorType, Encoder, EncodingError};

use super::font;

/// A colour as 0xRRGGBB.
pub(super) type Colour = u32;

/// The bytes of a pixel.
const CHANNELS: usize = 3;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    pub(super) const fn new(x: usize, y: usize, width: usize, height: usize) -> Self {
        Self { x, y, width, height }
    }

    /// Returns the area without a border of this width.
    pub(super) const fn inside(self, border: usize) -> Self {
        Self {
            x: self.x + border,
            y: self.y + border,
            width: self.width.saturating_sub(2 * border),
            height: self.height.saturating_sub(2 * border),
        }
    }

    /// Returns the area at another place.
    pub(super) const fn moved(self, right: usize, down: usize) -> Self {
        Self { x: self.x + right, y: self.y + down, ..self }
    }
}

/// The pixels of a picture. Whatever lies outside is left out.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![0; width * height * CHANNELS] }
    }

    pub(super) fn fill(&mut self, area: Area, colour: Colour) {
        let [_, rgb @ ..] = colour.to_be_bytes();
        let right = (area.x + area.width).min(self.width);
        for y in area.y..(area.y + area.height).min(self.height) {
            let row = (y * self.width + area.x) * CHANNELS..(y * self.width + right) * CHANNELS;
            for pixel in self.pixels.get_mut(row).unwrap_or_default().chunks_exact_mut(CHANNELS) {
                pixel.copy_from_slice(&rgb);
            }
        }
    }

    /// Fills an area from one colour on top to another at the bottom.
    pub(super) fn shade(&mut self, area: Area, top: Colour, bottom: Colour) {
        for row in 0..area.height {
            let mixed = mix(top, bottom, row, area.height);
            self.fill(Area::new(area.x, area.y + row, area.width, 1), mixed);
        }
    }

    /// Fills an area within a border of one pixel.
    pub(super) fn framed(&mut self, area: Area, colour: Colour, border: Colour) {
        self.fill(area, border);
        self.fill(area.inside(1), colour);
    }

    /// Writes a text from its top left corner, each pixel of the font as a square of this size.
    pub(super) fn text(&mut self, at: (usize, usize), size: usize, colour: Colour, text: &str) {
        let (mut x, y) = at;
        for character in text.chars() {
            let columns = font::glyph(character);
            for column in columns {
                let rows = (0..font::ROWS).filter(|row| column & (1 << row) != 0);
                for row in rows {
                    self.fill(Area::new(x, y + row * size, size, size), colour);
                }
                x += size;
            }
            x += size;
        }
    }

    /// Writes a text that ends at a right edge.
    pub(super) fn text_to(&mut self, at: (usize, usize), size: usize, colour: Colour, text: &str) {
        let (right, y) = at;
        self.text((right.saturating_sub(text_width(size, text)), y), size, colour, text);
    }

    /// Writes a text in the middle of an area.
    pub(super) fn centred(&mut self, area: Area, size: usize, colour: Colour, text: &str) {
        let x = area.x + area.width.saturating_sub(text_width(size, text)) / 2;
        let y = area.y + area.height.saturating_sub(font::HEIGHT * size) / 2;
        self.text((x, y), size, colour, text);
    }

    /// Returns the picture as a PNG.
    pub(super) fn png(&self) -> Result<Vec<u8>, EncodingError> {
        let mut bytes = Vec::new();
        let side = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
        let mut encoder = Encoder::new(&mut bytes, side(self.width), side(self.height));
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(bytes)
    }
}

/// Returns the width of a text in pixels.
pub(super) fn text_width(size: usize, text: &str) -> usize {
    let columns: usize = text.chars().map(|character| font::glyph(character).len() + 1).sum();
    columns.saturating_sub(1) * size
}

/// Returns the colour at `part` of `whole` between two.
fn mix(from: Colour, to: Colour, part: usize, whole: usize) -> Colour {
    let whole = u32::try_from(whole.max(1)).unwrap_or(u32::MAX);
    let part = u32::try_from(part).unwrap_or(whole).min(whole);
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    let mut mixed = [0; 4];
    for ((mixed, from), to) in mixed.iter_mut().zip(from).zip(to) {
        let sum = u32::from(from) * (whole - part) + u32::from(to) * part;
        *mixed = u8::try_from(sum / whole).unwrap_or(u8::MAX);
    }
    Colour::from_be_bytes(mixed)
}
