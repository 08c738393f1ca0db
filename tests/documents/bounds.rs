//! Values of constants, read from their sources, and quantities in a text.

/// The value of a constant in a text: a count, bytes, or milliseconds.
pub(crate) fn constant(name: &str, code: &str) -> Option<u64> {
    let (_, rest) = code.split_once(&format!("const {name}: "))?;
    let (_, value) = rest.split_once(';')?.0.split_once('=')?;
    let value = Reader { rest: value.trim(), code }.shifted()?;
    // The unit is in the name.
    let unit = match name.split('_').find(|part| ["KIB", "S", "DAYS"].contains(part)) {
        Some("KIB") => 1024,
        Some("S") => 1000,
        Some("DAYS") => 86_400_000,
        Some(_) | None => 1,
    };
    Some(value * unit)
}

/// The quantity that a text begins with, in bytes or milliseconds if it has a unit.
pub(crate) fn quantity(text: &str) -> Option<u64> {
    let text = text.split(['`', '|']).next().unwrap_or_default();
    let text = text.trim_start_matches([',', ' ']).trim_start_matches("about ");
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == ',')).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches(',').replace(',', "");
    let number: u64 = digits.parse().ok()?;
    let rest = &text[end..];
    if rest.starts_with("²⁰") {
        return Some(1 << 20);
    }
    // It is a sum of two.
    if rest.ends_with(" together ") {
        return None;
    }
    let unit = match rest.trim_start().split(|c: char| !c.is_alphabetic()).next()? {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "s" => 1000,
        "min" | "minutes" => 60_000,
        "h" | "hour" => 3_600_000,
        "days" => 86_400_000,
        _ => 1,
    };
    Some(number * unit)
}

/// A reader of a constant's expression: `8 * MIB`, `1 << 20`, `Duration::from_secs(30)`.
struct Reader<'a> {
    rest: &'a str,
    /// Where other constants are defined.
    code: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, symbol: &str) -> bool {
        let taken = self.rest.trim_start().strip_prefix(symbol);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn shifted(&mut self) -> Option<u64> {
        let mut value = self.summed()?;
        while self.take("<<") {
            value <<= self.summed()?;
        }
        Some(value)
    }

    fn summed(&mut self) -> Option<u64> {
        let mut value = self.multiplied()?;
        loop {
            if self.take("+") {
                value += self.multiplied()?;
            } else if self.take("-") {
                value -= self.multiplied()?;
            } else {
                return Some(value);
            }
        }
    }

    fn multiplied(&mut self) -> Option<u64> {
        let mut value = self.single()?;
        loop {
            if self.take("*") {
                value *= self.single()?;
            } else if self.take("/") {
                value /= self.single()?;
            } else {
                return Some(value);
            }
        }
    }

    fn single(&mut self) -> Option<u64> {
        for (duration, unit) in [("from_millis(", 1), ("from_secs(", 1000), ("from_mins(", 60_000)]
        {
            if self.take(&format!("Duration::{duration}")) {
                return Some(self.parenthesised()? * unit);
            }
        }
        if self.take("(") {
            return self.parenthesised();
        }
        let text = self.rest.trim_start();
        let end =
            text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits: String = word.chars().filter(|c| *c != '_').collect();
            let digits = digits.trim_end_matches(char::is_alphabetic);
            return digits.parse().ok().or_else(|| {
                ["u64", "usize", "u32", "u16", "i64"]
                    .iter()
                    .find_map(|suffix| digits.strip_suffix(suffix)?.parse().ok())
            });
        }
        match word {
            "" => None,
            word => constant(word, self.code),
        }
    }

    fn parenthesised(&mut self) -> Option<u64> {
        let value = self.shifted()?;
        self.take(")").then_some(value)
    }
}
