//! A thumbnail of a screenshot beside its decoding alone, in processor time: `cargo bench --package
//! blackboard-thumbnail`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark tells what it found"
)]

use std::hint::black_box;
use std::time::Duration;

use blackboard_thumbnail::Bounds;
use image::codecs::png::PngEncoder;
use image::{Rgb, RgbImage};
use rustix::time::{ClockId, clock_gettime};

/// The size of the screenshot.
const SIZE: (u32, u32) = (1920, 1080);

/// The longest side of the thumbnail.
const MAX_PX: u32 = 1024;

/// The size of a character, with the gap to the next one.
const CHARACTER: (u32, u32) = (9, 20);

const ROUNDS: usize = 25;

/// Three windows with text on a gradient.
fn screenshot() -> Vec<u8> {
    let windows = [
        ((40, 40), (1140, 940), 250),
        ((1180, 80), (1880, 680), 40),
        ((600, 500), (1500, 1020), 255),
    ];
    let picture = RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        let inside = |((left, top), (right, bottom), _): &_| {
            (*left..*right).contains(&x) && (*top..*bottom).contains(&y)
        };
        let Some((_, _, paper)) = windows.iter().rev().find(|window| inside(window)) else {
            let shade = |of: u32| u8::try_from(of).unwrap_or(u8::MAX);
            return Rgb([shade(30 + y / 20), shade(60 + x / 40), 120]);
        };
        let (column, line) = (x / CHARACTER.0, y / CHARACTER.1);
        let letter = hash(column.wrapping_mul(7919) ^ line.wrapping_mul(104_729)) % 64;
        let is_gap = x % CHARACTER.0 == 0 || y % CHARACTER.1 > 13 || letter > 50;
        let dot = hash((letter << 16) | ((x % CHARACTER.0) << 8) | (y % CHARACTER.1));
        let is_ink = !is_gap && dot % 100 < 45;
        let shade = u8::try_from(dot % 3 * 40).unwrap_or_default();
        Rgb([if !is_ink {
            *paper
        } else if *paper > 100 {
            30 + shade
        } else {
            220 - shade
        }; 3])
    });
    let mut png = Vec::new();
    picture.write_with_encoder(PngEncoder::new(&mut png)).unwrap();
    png
}

fn hash(of: u32) -> u32 {
    let mixed = (of ^ (of >> 16)).wrapping_mul(0x045d_9f3b);
    (mixed ^ (mixed >> 16)).wrapping_mul(0x045d_9f3b) >> 4
}

/// The time that the thread has had a processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn time_of<T>(work: impl FnOnce() -> T) -> Duration {
    let begun = processor_time();
    black_box(work());
    processor_time() - begun
}

fn main() {
    let png = screenshot();
    // In turns, so that another program's load falls on both.
    let round = || {
        let decoded = time_of(|| image::load_from_memory(&png).unwrap());
        (decoded, time_of(|| blackboard_thumbnail::make(&png, Bounds::px(Some(MAX_PX))).unwrap()))
    };
    let rounds: Vec<(Duration, Duration)> = std::iter::repeat_with(round).take(ROUNDS).collect();
    let decoded = rounds.iter().map(|(decoded, _)| *decoded).min().unwrap();
    let made = rounds.iter().map(|(_, made)| *made).min().unwrap();
    println!(
        "a PNG of {} kB, {} x {}: decoded in {decoded:.1?}, with a thumbnail in {made:.1?}",
        png.len() / 1000,
        SIZE.0,
        SIZE.1
    );
    println!("FIGURE thumbnail_ratio {:.1}", made.as_secs_f64() / decoded.as_secs_f64());
}
