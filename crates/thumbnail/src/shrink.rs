//! Scaling down: each pixel is the mean of the area that it covers.
//!
//! Integer arithmetic gives the same bytes on every machine. The buffers besides the result are two rows of sums and
//! the spans of the columns.

use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};

use super::decode::Decoded;

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
struct Span {
    first: usize,
    last: usize,
    first_weight: u64,
    last_weight: u64,
}

fn spans(from: u32, to: u32) -> impl Iterator<Item = Span> {
    let (from, to) = (u64::from(from), u64::from(to));
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    (0..to).map(move |at| {
        let (begin, end) = (at * from, (at + 1) * from);
        let (first, last) = (begin / to, (end - 1) / to);
        let first_weight = ((first + 1) * to).min(end) - begin;
        let last_weight = end - (last * to).max(begin);
        Span { first: index(first), last: index(last), first_weight, last_weight }
    })
}

/// The weighted sums of a pixel's samples. If there is an alpha channel, colours are also weighted by their opacity.
type Sums<const N: usize> = [u64; N];

fn add<const N: usize>(sums: &mut Sums<N>, pixel: &[u8; N], weight: u64, is_transparent: bool) {
    match (sums.as_mut_slice(), pixel.as_slice()) {
        ([sums @ .., opaqueness], [colours @ .., alpha]) if is_transparent => {
            let weight = weight * u64::from(*alpha);
            *opaqueness += weight;
            add_each(sums, colours, weight);
        }
        (sums, samples) => add_each(sums, samples, weight),
    }
}

fn add_each(sums: &mut [u64], samples: &[u8], weight: u64) {
    for (sum, sample) in sums.iter_mut().zip(samples) {
        *sum += u64::from(*sample) * weight;
    }
}

fn reduced<const N: usize>(
    samples: &[u8],
    from: (u32, u32),
    to: (u32, u32),
    is_transparent: bool,
) -> Vec<u8> {
    let (pixels, _) = samples.as_chunks::<N>();
    let width = usize::try_from(from.0).unwrap_or(usize::MAX);
    let columns: Vec<Span> = spans(from.0, to.0).collect();
    let area = u64::from(from.0) * u64::from(from.1);
    let mut out = Vec::with_capacity(columns.len() * N * usize::try_from(to.1).unwrap_or_default());
    let (mut row, mut row_at) = (vec![[0; N]; columns.len()], None);
    for span in spans(from.1, to.1) {
        let mut sums: Vec<Sums<N>> = vec![[0; N]; columns.len()];
        for y in span.first..=span.last {
            // A row that two rows of the result share is added up once.
            if row_at != Some(y) {
                let begin = y.saturating_mul(width);
                let pixels = pixels.get(begin..begin + width).unwrap_or_default();
                add_up(pixels, &columns, u64::from(to.0), is_transparent, &mut row);
                row_at = Some(y);
            }
            let weight = match y {
                _ if y == span.first => span.first_weight,
                _ if y == span.last => span.last_weight,
                _ => u64::from(to.1),
            };
            for (sums, row) in sums.iter_mut().zip(&row) {
                for (sum, added) in sums.iter_mut().zip(row) {
                    *sum += added * weight;
                }
            }
        }
        for sums in &sums {
            push_mean(sums, area, is_transparent, &mut out);
        }
    }
    out
}

/// Adds up one row, into the sums of each pixel of the result.
fn add_up<const N: usize>(
    pixels: &[[u8; N]],
    columns: &[Span],
    whole: u64,
    is_transparent: bool,
    row: &mut [Sums<N>],
) {
    for (sums, span) in row.iter_mut().zip(columns) {
        *sums = [0; N];
        match pixels.get(span.first..=span.last) {
            Some([one]) => add(sums, one, span.first_weight, is_transparent),
            Some([first, between @ .., last]) => {
                for pixel in between {
                    add(sums, pixel, whole, is_transparent);
                }
                add(sums, first, span.first_weight, is_transparent);
                add(sums, last, span.last_weight, is_transparent);
            }
            Some([]) | None => {}
        }
    }
}

/// Appends the mean of each sample, rounded.
fn push_mean<const N: usize>(sums: &Sums<N>, area: u64, is_transparent: bool, out: &mut Vec<u8>) {
    let mean = |sum: u64, of: u64| u8::try_from((sum + of / 2) / of.max(1)).unwrap_or(u8::MAX);
    match sums.as_slice() {
        [colours @ .., alpha] if is_transparent => {
            out.extend(colours.iter().map(|sum| mean(*sum, *alpha)));
            out.push(mean(*alpha, area));
        }
        all => out.extend(all.iter().map(|sum| mean(*sum, area))),
    }
}
