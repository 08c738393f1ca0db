//! Scaling down: each pixel is the mean of the area that it covers.
//!
//! Floating point without fused operations gives the same bytes on every machine, and is what their vector units are
//! quick at. The buffers besides the result are a row of sums and the spans of the columns. So the rows of a large picture can
//! be added up while they are decoded, with the same result.

use std::ops::{Add, Mul};

use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};

use super::Undecodable;
use super::decode::Decoded;
#[cfg(doc)]
use super::need::SIDE_MAX;

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
    let (samples, channels) = if from == to {
        (samples, channels)
    } else {
        match channels {
            1 => (reduced::<1, 1>(&samples, from, to), 1),
            2 if is_opaque::<2>(&samples) => (reduced::<2, 1>(&samples, from, to), 1),
            2 => (reduced::<2, 2>(&samples, from, to), 2),
            3 => (reduced::<3, 3>(&samples, from, to), 3),
            _ if is_opaque::<4>(&samples) => (reduced::<4, 3>(&samples, from, to), 3),
            _ => (reduced::<4, 4>(&samples, from, to), 4),
        }
    };
    picture(samples, channels, to)
}

/// Rows of a picture that are read one after the other.
pub(super) trait Source {
    /// Reads the next row, with eight bits a sample.
    fn next(&mut self, row: &mut [u8]) -> Result<(), Undecodable>;

    /// Checks what follows the last row.
    fn finish(&mut self) -> Result<(), Undecodable>;
}

/// Scales an image while its rows are read, to the same result as [`shrink`].
///
/// # Errors
///
/// [`Undecodable::Damaged`].
pub(super) fn shrink_rows<S: Source>(
    open: impl Fn() -> Result<S, Undecodable>,
    channels: u8,
    from: (u32, u32),
    to: (u32, u32),
) -> Result<DynamicImage, Undecodable> {
    let (samples, channels) = match channels {
        1 => (reduced_rows::<1, 1>(&mut open()?, from, to), 1),
        2 => match reduced_rows::<2, 1>(&mut open()?, from, to) {
            Err(Stop::Translucent) => (reduced_rows::<2, 2>(&mut open()?, from, to), 2),
            opaque => (opaque, 1),
        },
        3 => (reduced_rows::<3, 3>(&mut open()?, from, to), 3),
        // Most are opaque. One that is not is read again from its first row.
        _ => match reduced_rows::<4, 3>(&mut open()?, from, to) {
            Err(Stop::Translucent) => (reduced_rows::<4, 4>(&mut open()?, from, to), 4),
            opaque => (opaque, 3),
        },
    };
    picture(samples.map_err(|_| Undecodable::Damaged)?, channels, to).ok_or(Undecodable::Damaged)
}

/// Scales a scaled picture once more.
pub(super) fn shrink_again(of: &DynamicImage, to: (u32, u32)) -> Option<DynamicImage> {
    let (samples, from) = (of.as_bytes(), (of.width(), of.height()));
    let channels = of.color().channel_count();
    let samples = match channels {
        1 => reduced::<1, 1>(samples, from, to),
        2 => reduced::<2, 2>(samples, from, to),
        3 => reduced::<3, 3>(samples, from, to),
        _ => reduced::<4, 4>(samples, from, to),
    };
    picture(samples, channels, to)
}

/// An alpha channel without transparency is dropped.
fn picture(samples: Vec<u8>, channels: u8, to: (u32, u32)) -> Option<DynamicImage> {
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
        if let Some(place) = bytes.get_mut(length) {
            *place = narrow(u16::from_ne_bytes([low, high]));
        }
        length += 1;
    }
    bytes.truncate(length);
    bytes
}

/// Converts a sample of sixteen bits to eight bits.
pub(super) fn narrow(sample: u16) -> u8 {
    u8::try_from((u32::from(sample) + 128) / 257).unwrap_or(u8::MAX)
}

/// Whether no pixel is transparent.
fn is_opaque<const N: usize>(samples: &[u8]) -> bool {
    // Of whole pixels each, as wide as a vector.
    let (chunks, rest) = samples.as_chunks::<16>();
    let mut all = [u8::MAX; 16];
    for chunk in chunks {
        all.iter_mut().zip(chunk).for_each(|(all, sample)| *all &= sample);
    }
    let ends = [&all[..], rest];
    let mut pixels = ends.iter().flat_map(|samples| samples.as_chunks::<N>().0);
    pixels.all(|pixel| pixel.last() == Some(&u8::MAX))
}

/// Returns the colours without the alpha channel if no pixel is transparent, else the samples unchanged.
fn opaque<const N: usize>(mut samples: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
    if !is_opaque::<N>(&samples) {
        return Err(samples);
    }
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        index % N != 0
    });
    Ok(samples)
}

/// The rows that a row of the result covers. The first and the last may be covered in part; if they are the same one,
/// the last weight is zero.
struct Span {
    first: usize,
    last: usize,
    first_weight: u16,
    last_weight: u16,
}

/// The rows of a picture and those of its result, divided by their common factor: weights are whole numbers, and a row
/// that is covered whole weighs `to`.
#[derive(Clone, Copy)]
struct Rows {
    from: u16,
    to: u16,
}

impl Rows {
    /// `from` is at most [`SIDE_MAX`].
    fn new(from: u32, to: u32) -> Self {
        let (mut factor, mut rest) = (from.max(1), to);
        while rest != 0 {
            (factor, rest) = (rest, factor % rest);
        }
        let reduced = |side: u32| u16::try_from(side / factor).unwrap_or(u16::MAX);
        Self { from: reduced(from), to: reduced(to) }
    }

    /// The weights of a span add up to `from`.
    fn spans(self) -> impl Iterator<Item = Span> {
        let (from, to) = (u64::from(self.from), u64::from(self.to));
        (0..).map(move |at| {
            let (begin, end) = (at * from, (at + 1) * from);
            let (first, last) = (begin / to, (end - 1) / to);
            let first_weight = weight(((first + 1) * to).min(end) - begin);
            let last_weight = if first == last { 0 } else { weight(end - last * to) };
            Span { first: index(first), last: index(last), first_weight, last_weight }
        })
    }
}

/// The columns that a pixel of the result covers, after the one that it shares with the pixel before.
struct Step {
    /// The columns that are covered whole, before the last one.
    whole: u32,
    /// The weight of the last one, of which a part may be left for the next pixel.
    last_weight: f32,
    left_weight: f32,
}

/// A column that is covered whole weighs as many units as the result has columns.
fn steps(from: u32, to: u32, unit: f32) -> impl Iterator<Item = Step> {
    let (from, to) = (u64::from(from), u64::from(to));
    (0..to).map(move |at| {
        let (begin, end) = (at * from, (at + 1) * from);
        let last = (end - 1) / to;
        Step {
            whole: u32::try_from(last - begin.div_ceil(to)).unwrap_or_default(),
            last_weight: f32::from(weight(end - last * to)) * unit,
            left_weight: f32::from(weight((last + 1) * to - end)) * unit,
        }
    })
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// A weight is at most the number of pixels along a side.
fn weight(weight: u64) -> u16 {
    u16::try_from(weight).unwrap_or(u16::MAX)
}

/// The number of samples that are added at once, at least as many as a pixel has.
const LANES: usize = 4;

/// A number that sums of rows are kept in.
trait Sum: Copy + From<u8> + From<u16> + Into<f32> + Add<Output = Self> + Mul<Output = Self> {}

impl Sum for u16 {}
impl Sum for f32 {}

/// Whether the last of a pixel's samples is its opacity, by which its colours are weighted too.
const fn is_translucent(samples: usize) -> bool {
    samples.is_multiple_of(2)
}

/// Returns the mean of the area of each pixel. The alpha channel of opaque pixels is left out, if `OUT` is less than
/// `N`.
fn reduced<const N: usize, const OUT: usize>(
    samples: &[u8],
    from: (u32, u32),
    to: (u32, u32),
) -> Vec<u8> {
    let rows = Rows::new(from.1, to.1);
    let stride = index(from.0.into()) * N;
    let row = |y: usize| samples.get(y.saturating_mul(stride)..).unwrap_or_default();
    if is_translucent(OUT) {
        let means = means::<f32, N, OUT>(rows, from.0, to, |sums, span| {
            sums.fill(0.0);
            add_translucent::<N>(sums, row(span.first), span.first_weight);
            (span.first + 1..span.last).for_each(|y| add_translucent::<N>(sums, row(y), rows.to));
            add_translucent::<N>(sums, row(span.last), span.last_weight);
            Ok(())
        });
        return means.unwrap_or_default();
    }
    // Twice as many of the small sums fit a vector, and most screens and their thumbnails have a common factor.
    let means = if rows.from <= u16::MAX / u16::from(u8::MAX) {
        means::<u16, N, OUT>(rows, from.0, to, |sums, span| add_rows(sums, span, rows.to, row))
    } else {
        means::<f32, N, OUT>(rows, from.0, to, |sums, span| add_rows(sums, span, rows.to, row))
    };
    means.unwrap_or_default()
}

/// Why adding up rows ends early.
enum Stop {
    /// A pixel is transparent, and `OUT` has no alpha channel.
    Translucent,
    Undecodable,
}

/// Does the same as [`reduced`] with rows that are read one after the other. The sums are equal: those of opaque rows are
/// exact, and those of others are added in the same order.
fn reduced_rows<const N: usize, const OUT: usize>(
    source: &mut impl Source,
    from: (u32, u32),
    to: (u32, u32),
) -> Result<Vec<u8>, Stop> {
    let rows = Rows::new(from.1, to.1);
    let mut row = vec![0; index(from.0.into()) * N];
    let mut read = 0;
    let means = means::<f32, N, OUT>(rows, from.0, to, |sums, span| {
        sums.fill(0.0);
        for y in span.first..=span.last {
            // The last row of a span may be the first one of the next.
            if y == read {
                source.next(&mut row).map_err(|_| Stop::Undecodable)?;
                read += 1;
                if is_translucent(N) && !is_translucent(OUT) && !is_opaque::<N>(&row) {
                    return Err(Stop::Translucent);
                }
            }
            let weight = if y == span.first {
                span.first_weight
            } else if y == span.last {
                span.last_weight
            } else {
                rows.to
            };
            if is_translucent(OUT) {
                add_translucent::<N>(sums, &row, weight);
            } else {
                add_row(sums, &row, weight.into());
            }
        }
        Ok(())
    })?;
    source.finish().map_err(|_| Stop::Undecodable)?;
    Ok(means)
}

/// Returns the means of spans of rows that `add` sums up.
fn means<S: Sum, const N: usize, const OUT: usize>(
    rows: Rows,
    from_width: u32,
    to: (u32, u32),
    mut add: impl FnMut(&mut [S], &Span) -> Result<(), Stop>,
) -> Result<Vec<u8>, Stop> {
    let unit = 1.0 / (from_width as f32 * f32::from(rows.from));
    let columns: Vec<Step> = steps(from_width, to.0, unit).collect();
    let stride = index(from_width.into()) * N;
    let mut out = vec![0; columns.len() * OUT * index(to.1.into())];
    // Rows first: that takes each pixel once or twice, in order. The last pixel's lanes reach beyond its row.
    let mut sums = vec![S::from(0_u8); stride + LANES];
    let mut means = vec![0.0; columns.len() * OUT + LANES];
    let places = out.chunks_exact_mut((columns.len() * OUT).max(1));
    for (places, span) in places.zip(rows.spans()) {
        add(sums.get_mut(..stride).unwrap_or_default(), &span)?;
        let whole_weight = unit * to.0 as f32;
        if across::<S, N, OUT>(&sums, &columns, whole_weight, &mut means).is_none() {
            break;
        }
        if is_translucent(OUT) {
            means.as_chunks_mut::<OUT>().0.iter_mut().for_each(divide_by_opacity);
        }
        places.iter_mut().zip(&means).for_each(|(place, mean)| *place = rounded(*mean));
    }
    Ok(out)
}

/// Sets the sums of the columns to those of a span. They are exact: the weights add up to at most [`SIDE_MAX`] rows, so
/// that a sum is below 2^24, or of so few that it is below 2^16.
fn add_rows<'a, S: Sum>(
    sums: &mut [S],
    span: &Span,
    whole_weight: u16,
    row: impl Fn(usize) -> &'a [u8],
) -> Result<(), Stop> {
    let weights = (S::from(span.first_weight), S::from(span.last_weight));
    for ((sum, first), last) in sums.iter_mut().zip(row(span.first)).zip(row(span.last)) {
        *sum = S::from(*first) * weights.0 + S::from(*last) * weights.1;
    }
    for y in span.first + 1..span.last {
        add_row(sums, row(y), S::from(whole_weight));
    }
    Ok(())
}

fn add_row<S: Sum>(sums: &mut [S], row: &[u8], weight: S) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum = *sum + S::from(*sample) * weight;
    }
}

fn add_translucent<const N: usize>(sums: &mut [f32], row: &[u8], weight: u16) {
    let (sums, row) = (sums.as_chunks_mut::<N>().0, row.as_chunks::<N>().0);
    for (sums, pixel) in sums.iter_mut().zip(row) {
        if let ([sums @ .., opacity], [colours @ .., alpha]) = (&mut sums[..], &pixel[..]) {
            let weight = f32::from(weight) * f32::from(*alpha);
            *opacity += weight;
            for (sum, colour) in sums.iter_mut().zip(colours) {
                *sum += f32::from(*colour) * weight;
            }
        }
    }
}

/// Adds up the columns that each pixel of the result covers. The lanes after its samples are of no use, and the next
/// pixel's replace them. `None` if there are too few columns.
fn across<S: Sum, const N: usize, const OUT: usize>(
    mut sums: &[S],
    columns: &[Step],
    whole_weight: f32,
    mut means: &mut [f32],
) -> Option<()> {
    let mut carried = [0.0; LANES];
    for step in columns {
        let mut mean = carried;
        for _ in 0..step.whole {
            mean = plus(mean, next::<S, N>(&mut sums)?, whole_weight);
        }
        let last = next::<S, N>(&mut sums)?;
        *means.first_chunk_mut()? = plus(mean, last, step.last_weight);
        means = means.get_mut(OUT..)?;
        carried = plus([0.0; LANES], last, step.left_weight);
    }
    Some(())
}

#[inline]
fn next<S: Sum, const N: usize>(sums: &mut &[S]) -> Option<[f32; LANES]> {
    let lanes = sums.first_chunk::<LANES>()?;
    *sums = sums.get(N..)?;
    Some(lanes.map(Into::into))
}

#[inline]
fn plus(mut sum: [f32; LANES], lanes: [f32; LANES], weight: f32) -> [f32; LANES] {
    sum.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane * weight);
    sum
}

fn divide_by_opacity<const N: usize>(pixel: &mut [f32; N]) {
    if let [colours @ .., alpha] = &mut pixel[..] {
        let alpha = alpha.max(f32::MIN_POSITIVE);
        colours.iter_mut().for_each(|colour| *colour /= alpha);
    }
}

/// Rounds a mean: added to the number whose last bit stands for one, its fraction goes. A half goes up, even if the
/// arithmetic before has left it a little short.
#[inline]
pub(super) fn rounded(mean: f32) -> u8 {
    const SHORT_MAX: f32 = 1.0 / 1024.0;
    const ONES: f32 = 8_388_608.0;
    let [low, ..] = (mean + SHORT_MAX + ONES).to_bits().to_le_bytes();
    low
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
            let transparent = reduced::<4, 4>(&samples, from, to);
            assert_eq!(transparent, plain::<4>(&samples, from, to, true));
            let colours = reduced::<3, 3>(&samples[..count * 3], from, to);
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
            for made in [reduced::<4, 4>(&white, from, to), reduced::<4, 3>(&white, from, to)] {
                assert!(made.iter().all(|sample| *sample == 255), "{from:?} {to:?}");
            }
        }
    }
}
