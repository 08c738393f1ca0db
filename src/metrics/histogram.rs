//! How long things take, or how large they are: how many were at most so much.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Text;
use super::number::Counter;

/// What one second is, as times are kept.
const SECOND: u64 = 1_000_000_000;

/// Bounds of times, in nanoseconds: 0.1 ms to 10 s.
const TIMES: [u64; BOUNDS] = [
    SECOND / 10_000,
    SECOND / 4_000,
    SECOND / 2_000,
    SECOND / 1_000,
    SECOND / 400,
    SECOND / 200,
    SECOND / 100,
    SECOND / 40,
    SECOND / 20,
    SECOND / 10,
    SECOND / 4,
    SECOND / 2,
    SECOND,
    SECOND * 5 / 2,
    SECOND * 5,
    SECOND * 10,
];

/// Bounds of numbers: each twice the one before.
const NUMBERS: [u64; BOUNDS] =
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];

const BOUNDS: usize = 16;

/// What was observed, by how much it was.
#[derive(Debug)]
pub struct Histogram {
    name: &'static str,
    help: &'static str,
    bounds: &'static [u64; BOUNDS],
    /// What one of what is written counts for.
    unit: u64,
    within: [Counter; BOUNDS],
    beyond: Counter,
    sum: AtomicU64,
}

impl Histogram {
    /// Of times, whose name ends with their unit.
    pub(super) const fn seconds(name: &'static str, help: &'static str) -> Self {
        Self::new(name, help, &TIMES, SECOND)
    }

    /// Of plain numbers.
    pub(super) const fn numbers(name: &'static str, help: &'static str) -> Self {
        Self::new(name, help, &NUMBERS, 1)
    }

    const fn new(
        name: &'static str,
        help: &'static str,
        bounds: &'static [u64; BOUNDS],
        unit: u64,
    ) -> Self {
        let within = [const { Counter::new() }; BOUNDS];
        let (beyond, sum) = (Counter::new(), AtomicU64::new(0));
        Self { name, help, bounds, unit, within, beyond, sum }
    }

    /// Notes how long something took.
    pub fn observe(&self, took: Duration) {
        self.note(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Notes how many there were.
    pub fn observe_number(&self, number: usize) {
        self.note(u64::try_from(number).unwrap_or(u64::MAX));
    }

    fn note(&self, value: u64) {
        let within = self.within.iter().zip(self.bounds).find(|(_, bound)| value <= **bound);
        within.map_or(&self.beyond, |(within, _)| within).add_one();
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(super) fn write(&self, text: &mut Text) {
        self.write_head(text);
        self.write_lines(text, &[]);
    }

    pub(super) fn write_head(&self, text: &mut Text) {
        text.head(self.name, self.help, "histogram");
    }

    /// What stands below its head, with these labels.
    pub(super) fn write_lines(&self, text: &mut Text, labels: &[(&str, &str)]) {
        let mut count = 0;
        for (within, bound) in self.within.iter().zip(self.bounds) {
            count += within.get();
            let bound = decimal(*bound, self.unit);
            text.part(self.name, "_bucket", labels, Some(("le", &bound)), count);
        }
        count += self.beyond.get();
        text.part(self.name, "_bucket", labels, Some(("le", "+Inf")), count);
        let sum = decimal(self.sum.load(Ordering::Relaxed), self.unit);
        text.part(self.name, "_sum", labels, None, sum);
        // The same as the last bucket's, whatever is noted meanwhile.
        text.part(self.name, "_count", labels, None, count);
    }
}

/// How often the unit is in the value, as a decimal number.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, part) = (value / unit, value % unit);
    if part == 0 {
        return whole.to_string();
    }
    // Units of times have nine digits below the point.
    format!("{whole}.{part:09}").trim_end_matches('0').to_owned()
}
