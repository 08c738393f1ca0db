//! Scaling down: each pixel is the mean of the area that it covers.
//!
//! Integer arithmetic gives the same bytes on every machine. The buffers besides the result are a row of sums and the
//! spans of the columns.

use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};

use super::decode::Decoded;
#[cfg(doc)]
use super::need::{DECODED_BYTES_MAX, SIDE_MAX};

/// Scales an image to a size not larger than its own, with eight bits a sample. An alpha channel without transparency
/// is dropped. `None` for a pixel format that no decoder here returns.
pub(super) fn shrink(decoded: Decoded, to: (u32, u32)) -> Option<DynamicImage> {
    let channels = decoded.color.channel_count();
    let is_wide = decoded.color.bytes_per_pixel() == 2 * channels;
    if !is_wide && decoded.color.bytes_per_pixel() != channels {
        return None;
    }
    let from = decoded.size;
    let samples = if is_wide { narrowed(decoded.bytes) } else { decoded.bytes };
    let samples = if from == to {
        samples
    } else {
        match channels {
            1 => reduced::<1>(&samples, from, to, false),
            2 => reduced::<2>(&samples, from, to, true),
            3 => reduced::<3>(&samples, from, to, false),
            _ => reduced::<4>(&samples, from, to, true),
        }
    };
    let (width, height) = to;
    Some(match channels {
        1 => GrayImage::from_raw(width, height, samples)?.into(),
        2 => match opaque::<2>(samples) {
            Ok(opaque) => GrayImage::from_raw(width, height, opaque)?.into(),
            Err(samples) => GrayAlphaImage::from_raw(width, height, samples)?.into(),
        },
        3 => RgbImage::from_raw(width, height, samples)?.into(),
        _ => match opaque::<4>(samples) {
            Ok(opaque) => RgbImage::from_raw(width, height, opaque)?.into(),
            Err(samples) => RgbaImage::from_raw(width, height, samples)?.into(),
        },
    })
}

/// Converts samples of sixteen bits to eight bits, in place.
fn narrowed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut length = 0;
    for at in (0..bytes.len()).step_by(2) {
        let Some(&[low, high]) = bytes.get(at..at + 2) else { break };
        let sample = (u32::from(u16::from_ne_bytes([low, high])) + 128) / 257;
        if let Some(place) = bytes.get_mut(length) {
            *place = u8::try_from(sample).unwrap_or(u8::MAX);
        }
        length += 1;
    }
    bytes.truncate(length);
    bytes
}

/// Returns the colours without the alpha channel if no pixel is transparent, else the samples unchanged.
fn opaque<const N: usize>(mut samples: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    if !samples.as_chunks::<N>().0.iter().all(|pixel| pixel.last() == Some(&u8::MAX)) {
        return Err(samples);
    }
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        index % N != 0
    });
    Ok(samples)
}

/// The part of a row or column that one pixel of the result covers. A pixel that is covered whole weighs as much as
/// the result has pixels along that side. The first and the last may be covered in part.
struct Span<W> {
    first: usize,
    last: usize,
    first_weight: W,
    last_weight: W,
}

fn spans<W: From<u32>>(from: u32, to: u32) -> impl Iterator<Item = Span<W>> {
    let (from, to) = (u64::from(from), u64::from(to));
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    // A weight is at most the number of pixels along the side.
    let weight = |weight: u64| W::from(u32::try_from(weight).unwrap_or(u32::MAX));
    (0..to).map(move |at| {
        let (begin, end) = (at * from, (at + 1) * from);
        let (first, last) = (begin / to, (end - 1) / to);
        let first_weight = weight(((first + 1) * to).min(end) - begin);
        let last_weight = weight(end - (last * to).max(begin));
        Span { first: index(first), last: index(last), first_weight, last_weight }
    })
}

/// The weighted sums of a pixel's samples. If there is an alpha channel, colours are also weighted by their opacity.
type Sums<S, const N: usize> = [S; N];

fn reduced<const N: usize>(
    samples: &[u8],
    from: (u32, u32),
    to: (u32, u32),
    is_transparent: bool,
) -> Vec<u8> {
    let (pixels, _) = samples.as_chunks::<N>();
    let width = usize::try_from(from.0).unwrap_or(usize::MAX);
    let columns: Vec<Span<u64>> = spans(from.0, to.0).collect();
    let mean = Mean::of(u64::from(from.0) * u64::from(from.1));
    let mut out = Vec::with_capacity(columns.len() * N * usize::try_from(to.1).unwrap_or_default());
    // Rows first: that takes each pixel once or twice, in order.
    let mut added = vec![[0; N]; width];
    for span in spans::<u32>(from.1, to.1) {
        added.fill([0; N]);
        for y in span.first..=span.last {
            let weight = match y {
                _ if y == span.first => span.first_weight,
                _ if y == span.last => span.last_weight,
                _ => to.1,
            };
            let begin = y.saturating_mul(width);
            let row = pixels.get(begin..begin + width).unwrap_or_default();
            add_row(row, weight, is_transparent, &mut added);
        }
        for span in &columns {
            push_mean(&across(&added, span, to.0.into()), &mean, is_transparent, &mut out);
        }
    }
    out
}

/// Adds a row to the sums of its columns. They have room: the weights of a column add up to the number of rows, at most
/// [`SIDE_MAX`].
fn add_row<const N: usize>(
    row: &[[u8; N]],
    weight: u32,
    is_transparent: bool,
    added: &mut [Sums<u32, N>],
) {
    if !is_transparent {
        return add_each(added.as_flattened_mut(), row.as_flattened(), weight);
    }
    for (sums, pixel) in added.iter_mut().zip(row) {
        if let ([sums @ .., opaqueness], [colours @ .., alpha]) = (&mut sums[..], &pixel[..]) {
            let weight = weight * u32::from(*alpha);
            *opaqueness += weight;
            add_each(sums, colours, weight);
        }
    }
}

fn add_each(sums: &mut [u32], samples: &[u8], weight: u32) {
    for (sum, sample) in sums.iter_mut().zip(samples) {
        *sum += u32::from(*sample) * weight;
    }
}

/// Returns the sums of the columns that a pixel of the result covers.
fn across<const N: usize>(added: &[Sums<u32, N>], span: &Span<u64>, whole: u64) -> Sums<u64, N> {
    let mut all = [0; N];
    let mut add = |sums: &Sums<u32, N>, weight: u64| {
        for (all, sum) in all.iter_mut().zip(sums) {
            *all += u64::from(*sum) * weight;
        }
    };
    match added.get(span.first..=span.last) {
        Some([one]) => add(one, span.first_weight),
        Some([first, between @ .., last]) => {
            add(first, span.first_weight);
            between.iter().for_each(|sums| add(sums, whole));
            add(last, span.last_weight);
        }
        Some([]) | None => {}
    }
    all
}

/// Rounded division by the area of an image: a multiplication by its inverse, which takes a third of the time.
///
/// It is exact. The inverse times the area is above 2^64 by the area at most, and an area is at most
/// [`DECODED_BYTES_MAX`], 2^26. A sum is at most 255 times the area and half of it, so the error is below 2^60, and
/// changes no quotient.
struct Mean {
    area: u64,
    inverse: u128,
}

impl Mean {
    fn of(area: u64) -> Self {
        Self { area, inverse: (1 << 64) / u128::from(area.max(1)) + 1 }
    }

    fn of_sum(&self, sum: u64) -> u8 {
        let rounded = u128::from(sum + self.area / 2);
        u8::try_from((rounded * self.inverse) >> 64).unwrap_or(u8::MAX)
    }
}

/// Appends the mean of each sample, rounded.
fn push_mean<const N: usize>(
    sums: &Sums<u64, N>,
    mean: &Mean,
    is_transparent: bool,
    out: &mut Vec<u8>,
) {
    match sums.as_slice() {
        [colours @ .., alpha] if is_transparent => {
            let of_opaque = |sum: &u64| (sum + alpha / 2) / (*alpha).max(1);
            out.extend(colours.iter().map(|sum| u8::try_from(of_opaque(sum)).unwrap_or(u8::MAX)));
            out.push(mean.of_sum(*alpha));
        }
        all => out.extend(all.iter().map(|sum| mean.of_sum(*sum))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of the area of one sample, in exact fractions.
    fn plain<const N: usize>(
        samples: &[u8],
        from: (u32, u32),
        to: (u32, u32),
        has_alpha: bool,
    ) -> Vec<u8> {
        // How much of the source pixel `at` the result's pixel `of` covers, in parts of a result's pixel.
        let covered = |at: u32, of: u32, from: u32, to: u32| {
            let end = ((of + 1) * from).min((at + 1) * to);
            u64::from(end.saturating_sub((of * from).max(at * to)))
        };
        let mut out = Vec::new();
        for (y, x) in (0..to.1).flat_map(|y| (0..to.0).map(move |x| (y, x))) {
            let (mut sums, mut opaque, mut area) = ([0; N], 0, 0);
            for (v, u) in (0..from.1).flat_map(|v| (0..from.0).map(move |u| (v, u))) {
                let weight = covered(v, y, from.1, to.1) * covered(u, x, from.0, to.0);
                let pixel = &samples[((v * from.0 + u) as usize * N)..][..N];
                let alpha = if has_alpha { u64::from(pixel[N - 1]) } else { 1 };
                (opaque, area) = (opaque + weight * alpha, area + weight);
                sums.iter_mut()
                    .zip(pixel)
                    .for_each(|(sum, sample)| *sum += weight * alpha * u64::from(*sample));
            }
            let mean = |sum: u64, of: u64| u8::try_from((sum + of / 2) / of.max(1)).unwrap();
            let colours = if has_alpha { N - 1 } else { N };
            out.extend(sums[..colours].iter().map(|sum| mean(*sum, opaque)));
            out.extend(has_alpha.then(|| mean(opaque, area)));
        }
        out
    }

    #[test]
    fn each_sample_is_the_rounded_mean_of_its_area() {
        let mut seed = 1_u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(seed >> 24).unwrap()
        };
        for (from, to) in [
            ((7, 5), (3, 4)),
            ((16, 9), (5, 3)),
            ((13, 2), (13, 1)),
            ((6, 6), (1, 1)),
            ((3, 8), (2, 8)),
        ] {
            let samples: Vec<u8> = (0..from.0 * from.1 * 4).map(|_| random()).collect();
            let count = (from.0 * from.1) as usize;
            let transparent = reduced::<4>(&samples, from, to, true);
            assert_eq!(transparent, plain::<4>(&samples, from, to, true));
            let colours = reduced::<3>(&samples[..count * 3], from, to, false);
            assert_eq!(colours, plain::<3>(&samples[..count * 3], from, to, false));
        }
    }

    #[test]
    fn the_longest_sides_do_not_overflow() {
        for (from, to) in [
            ((65_535, 2), (3, 1)),
            ((2, 65_535), (1, 3)),
            ((65_535, 1000), (9, 1)),
            ((1, 65_535), (1, 65_534)),
        ] {
            let white = vec![255; (from.0 * from.1) as usize * 4];
            for has_alpha in [true, false] {
                let made = reduced::<4>(&white, from, to, has_alpha);
                assert!(made.iter().all(|sample| *sample == 255), "{from:?} {to:?}");
            }
        }
    }
}
