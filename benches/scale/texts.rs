//! Items to write, the same in each run.

use std::fmt::Write as _;

/// About how many bytes one has.
pub const ITEM_BYTES: usize = 800;

/// So many words are told apart in a text, each as likely as any other: it packs to about a third, as what
/// agents tell of their steps does.
const WORDS: u64 = 4_096;

const SYLLABLES: [&str; 16] = [
    "ta", "re", "win", "do", "ment", "con", "ver", "ble", "pro", "sta", "ing", "er", "li", "so",
    "un", "per",
];

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What an item holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// What an agent tells of a step.
    Step,
    /// Text of which next to nothing repeats.
    Noise,
}

/// Items without end, each another one.
pub struct Texts {
    kind: Kind,
    random: u64,
    made: u64,
}

impl Texts {
    pub fn of(kind: Kind) -> Self {
        Self { kind, random: 1, made: 0 }
    }

    /// The next item, as JSON text.
    pub fn next(&mut self) -> String {
        self.made += 1;
        match self.kind {
            Kind::Step => self.step(),
            Kind::Noise => self.noise(),
        }
    }

    fn step(&mut self) -> String {
        let (made, ms, control) = (self.made, self.random() % 10_000, self.random() % 500);
        let mut item = format!("{{\"step\":{made},\"agent\":\"AppAgent\",\"status\":\"CONTINUE\",");
        let action = "\"action\":{\"function\":\"click_input\",\"control\":";
        write!(item, "{action}{control},\"ms\":{ms}}},\"thought\":\"").ok();
        while item.len() < ITEM_BYTES / 2 {
            self.word(&mut item);
        }
        item.push_str(".\",\"observation\":\"");
        while item.len() < ITEM_BYTES - 6 {
            self.word(&mut item);
        }
        item.push_str(".\"}");
        item
    }

    fn noise(&mut self) -> String {
        let mut item = format!("{{\"step\":{},\"data\":\"", self.made);
        while item.len() < ITEM_BYTES - 2 {
            let drawn = BASE64.get(usize::try_from(self.random() & 63).unwrap_or_default());
            item.extend(drawn.map(|&letter| char::from(letter)));
        }
        item.push_str("\"}");
        item
    }

    fn word(&mut self, out: &mut String) {
        let word = self.random() % WORDS;
        out.push(' ');
        for part in [word & 15, word >> 4 & 15, word >> 8] {
            out.push_str(SYLLABLES.get(usize::try_from(part).unwrap_or_default()).unwrap_or(&"a"));
        }
    }

    /// `SplitMix64`.
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}
