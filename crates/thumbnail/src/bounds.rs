//! Bounds of the picture that is made, and the sizes that keep them.

/// The most that a made picture may have of each. `None` leaves a measure free. Without any bound the picture keeps its
/// size, or takes the largest that can be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bounds {
    /// Pixels of its longer side.
    pub max_px: Option<u32>,
    /// Pixels altogether.
    pub max_pixels: Option<u64>,
    /// Bytes of the encoded picture.
    pub max_bytes: Option<u64>,
}

impl Bounds {
    /// Returns bounds of the longer side alone.
    #[must_use]
    pub fn px(max_px: Option<u32>) -> Self {
        Self { max_px, ..Self::default() }
    }

    /// Returns the size of an image scaled down into the bounds of its sides and pixels.
    #[must_use]
    pub fn fit(self, size: (u32, u32)) -> (u32, u32) {
        let size = self.max_px.map_or(size, |max_px| scaled(size, max_px));
        self.max_pixels.map_or(size, |max| of_pixels(size, max))
    }

    /// Returns the bounds with this many pixels at most.
    pub(super) fn within(self, max_pixels: u64) -> Self {
        let max = self.max_pixels.map_or(max_pixels, |max| max.min(max_pixels));
        Self { max_pixels: Some(max), ..self }
    }
}

/// Returns the size of an image scaled down so that no side is longer than `max_px`. The size keeps its shape, has at
/// least one pixel, and never grows.
#[must_use]
pub fn scaled(size: (u32, u32), max_px: u32) -> (u32, u32) {
    let (width, height) = size;
    let longest = u64::from(width.max(height)).max(1);
    let max = u64::from(max_px).clamp(1, longest);
    let side = |side: u32| {
        let side = (u64::from(side) * max + longest / 2) / longest;
        u32::try_from(side.max(1)).unwrap_or(u32::MAX)
    };
    (side(width), side(height))
}

/// Returns the number of pixels of an image.
pub(super) fn pixels(size: (u32, u32)) -> u64 {
    u64::from(size.0) * u64::from(size.1)
}

/// Returns the size of an image scaled down so that it has at most `max` pixels, and at least one.
pub(super) fn of_pixels(size: (u32, u32), max: u64) -> (u32, u32) {
    if pixels(size) <= max {
        return size;
    }
    let longest = u128::from(size.0.max(size.1));
    let side = (longest * longest * u128::from(max) / u128::from(pixels(size))).isqrt();
    let mut side = u32::try_from(side).unwrap_or(u32::MAX);
    // The shorter side is rounded up at times.
    while side > 1 && pixels(scaled(size, side)) > max {
        side -= 1;
    }
    scaled(size, side)
}
