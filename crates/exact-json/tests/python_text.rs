//! Python's text of random documents, compared with a running Python.
//!
//! `BLACKBOARD_PYTHON_CASES` sets the number of documents.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a generator's slip should fail the test"
)]

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use exact_json::python::{dumps, dumps_members};
use exact_json::{DEPTH_MAX, check, quote, syntax};

/// Prints the text of each document, and that of its members with names of fewer than two characters.
const PYTHON: &str = r#"
import json, sys
for line in sys.stdin:
    value = json.loads(json.loads(line))
    print(json.dumps(value))
    if isinstance(value, dict):
        print(json.dumps({k: v for k, v in value.items() if len(k) < 2}))
    else:
        print()
"#;

const CASES: u64 = 3_000;

#[test]
fn the_text_of_any_document_is_pythons() {
    let Some(mut python) = start() else {
        println!("skipped: there is no python3 here");
        return;
    };
    let cases = std::env::var("BLACKBOARD_PYTHON_CASES").map_or(CASES, |n| n.parse().unwrap());
    let mut stdin = BufWriter::new(python.stdin.take().unwrap());
    let asking = thread::spawn(move || {
        for seed in 0..cases {
            let mut line = String::new();
            quote(&document(seed), &mut line);
            line.push('\n');
            stdin.write_all(line.as_bytes()).unwrap();
        }
    });
    let mut answers = BufReader::new(python.stdout.take().unwrap()).lines();
    for seed in 0..cases {
        let text = document(seed);
        assert_eq!(syntax(text.as_bytes()), Ok(text.trim_ascii()), "{text}");
        assert_eq!(check(&text, DEPTH_MAX), Ok(()), "{text}");
        let (mut whole, mut short_names) = (String::new(), String::new());
        dumps(&text, &mut whole);
        if text.trim_ascii_start().starts_with('{') {
            dumps_members(&text, |name| name.chars().count() < 2, &mut short_names);
        }
        assert_eq!(whole, answers.next().unwrap().unwrap(), "{text}");
        assert_eq!(short_names, answers.next().unwrap().unwrap(), "{text}");
    }
    asking.join().unwrap();
    assert!(python.wait().unwrap().success());
}

fn start() -> Option<Child> {
    Command::new("python3")
        .args(["-c", PYTHON])
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()
}

/// Returns the document of a seed.
fn document(seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = String::new();
    let levels = match random.below(50) {
        0 => 60,
        _ => random.below(5),
    };
    random.value(levels, &mut text);
    text
}

/// The `SplitMix64` sequence.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.below(u64::try_from(from.len()).unwrap());
        from[usize::try_from(index).unwrap()]
    }

    fn space(&mut self, out: &mut String) {
        out.push_str(self.pick(&["", "", "", "", " ", "\n", "\r\n\t", "  "]));
    }

    fn value(&mut self, levels: u64, out: &mut String) {
        self.space(out);
        match self.below(if levels == 0 { 4 } else { 7 }) {
            0 => self.string(12, out),
            1 | 2 => self.number(out),
            3 => out.push_str(self.pick(&["true", "false", "null"])),
            4 => self.container(levels, false, out),
            _ => self.container(levels, true, out),
        }
        self.space(out);
    }

    fn container(&mut self, levels: u64, named: bool, out: &mut String) {
        let count = match self.below(30) {
            0 => 40,
            // A deep document has one child at each level.
            _ if levels > 5 => 1,
            _ => self.below(5),
        };
        out.push(if named { '{' } else { '[' });
        for position in 0..count {
            if position > 0 {
                out.push(',');
            }
            if named {
                self.space(out);
                self.string(3, out);
                self.space(out);
                out.push(':');
            }
            let inner = if position == 0 { levels - 1 } else { levels.min(3) - 1 };
            self.value(inner, out);
        }
        self.space(out);
        out.push(if named { '}' } else { ']' });
    }

    fn string(&mut self, length_max: u64, out: &mut String) {
        out.push('"');
        for _ in 0..self.below(length_max + 1) {
            match self.below(10) {
                0..5 => out.push(self.pick(&['a', 'b', 'Z', '0', ' ', '/', '~', '\''])),
                5 => out.push_str(self.pick(&[
                    r#"\""#,
                    r"\\",
                    r"\/",
                    r"\b",
                    r"\f",
                    r"\n",
                    r"\r",
                    r"\t",
                    r"\u0061",
                    r"\uD83D\ude80",
                ])),
                6 => out.push(
                    self.pick(&['\u{7f}', '\u{80}', 'é', '中', '\u{2028}', '\u{ffff}', '🚀']),
                ),
                7 => out.push_str("0123456789abcdef plain"),
                8 => match char::from_u32(u32::try_from(self.below(0x11_0000)).unwrap()) {
                    Some(any) if any >= ' ' && any != '"' && any != '\\' => out.push(any),
                    _ => out.push('x'),
                },
                _ => match self.below(0x1_0000) {
                    0xD800..0xE000 => out.push('y'),
                    unit => out.push_str(&format!("\\u{unit:04X}")),
                },
            }
        }
        out.push('"');
    }

    fn number(&mut self, out: &mut String) {
        let double = f64::from_bits(self.next());
        out.push_str(&match self.below(10) {
            0 => self
                .pick(&["0", "-0", "-0.0", "0e9", "-0E-9", "1e16", "1e-5", "5e-324", "1E+22"])
                .to_owned(),
            1 => self.next().cast_signed().to_string(),
            2 => format!("{}{}", self.next() | 1, self.next()),
            3 if double.is_finite() => format!("{double:e}"),
            4 if double.is_finite() => format!("{double:.17e}"),
            5 => format!("-{}.{:03}", self.below(1_000), self.below(1_000)),
            6 => format!("{}.{}", self.below(20), self.next()),
            // Written in full, so that some are halfway between two shorter texts.
            7 => {
                let whole = self.next() >> (11 + self.below(20));
                let halves = i32::try_from(self.below(40)).unwrap();
                format!("{:.40}", whole as f64 / 2_f64.powi(halves))
            }
            8 => format!("{}e{}", self.below(100_000), self.below(50)),
            _ => format!("0.{:0width$}", self.below(10_000), width = self.pick(&[4, 6, 8, 12, 18])),
        });
    }
}
