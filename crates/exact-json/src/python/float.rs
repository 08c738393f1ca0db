//! Floats as Python's `repr` writes them: the shortest digits that give the same double.

use std::fmt::Write as _;

use crate::to_f64;

/// Decimals with at most this many digits are distinct doubles, so each is the shortest text of its double.
const EXACT_DIGITS: usize = 15;

/// Appends a JSON number as Python writes its float: as its `repr`, or as `Infinity` if it is too large.
pub(super) fn push(number: &str, out: &mut String) {
    if is_repr(number) {
        out.push_str(number);
        return;
    }
    let double = to_f64(number);
    if double.is_infinite() {
        out.push_str(if double > 0.0 { "Infinity" } else { "-Infinity" });
        return;
    }
    push_repr(double, out);
}

/// Returns true if the text is certainly its own `repr`, which spares most floats the conversion to a double.
fn is_repr(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let Some((whole, fraction)) = unsigned.split_once('.') else {
        return false;
    };
    whole.len() + fraction.len() <= EXACT_DIGITS
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && (fraction == "0" || !fraction.ends_with('0'))
        && (whole != "0" || !fraction.starts_with("0000"))
}

fn push_repr(double: f64, out: &mut String) {
    let shortest = shortest(double);
    let (mantissa, exponent) = split(&shortest);
    let unsigned = match mantissa.strip_prefix('-') {
        Some(unsigned) => {
            out.push('-');
            unsigned
        }
        None => mantissa,
    };
    let (first, others) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    match exponent {
        -4..0 => {
            out.push_str("0.");
            out.extend((exponent + 1..0).map(|_| '0'));
            out.extend([first, others]);
        }
        0..16 => push_fixed(first, others, exponent.unsigned_abs() as usize, out),
        _ => push_scientific(first, others, exponent, out),
    }
}

/// Returns the fewest digits that give this double again, in scientific notation. If two such texts are equally near,
/// Rust's formatter writes the larger and Python the even one.
fn shortest(double: f64) -> String {
    let larger = format!("{double:e}");
    let (mantissa, exponent) = split(&larger);
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    // A tie is halfway between two texts. It has one more digit, `places` after the point, so doubling it `places`
    // times gives a whole number.
    let places = i32::try_from(digits).unwrap_or(i32::MAX) - exponent;
    if digits <= EXACT_DIGITS || places < 1 || (double * 2_f64.powi(places)).fract() != 0.0 {
        return larger;
    }
    let even = format!("{double:.*e}", digits - 1);
    // Below a power of two doubles are closer together, and the even text may be another double's.
    if to_f64(&even).to_bits() == double.to_bits() { even } else { larger }
}

fn split(scientific: &str) -> (&str, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

/// Appends a number in fixed notation: `whole` of the other digits come before the point.
fn push_fixed(first: &str, others: &str, whole: usize, out: &mut String) {
    let (before, after) = others.split_at_checked(whole).unwrap_or((others, ""));
    out.extend([first, before]);
    out.extend((before.len()..whole).map(|_| '0'));
    out.push('.');
    out.push_str(if after.is_empty() { "0" } else { after });
}

fn push_scientific(first: &str, others: &str, exponent: i32, out: &mut String) {
    out.push_str(first);
    if !others.is_empty() {
        out.extend([".", others]);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let written = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    debug_assert!(written.is_ok(), "a String takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_pythons_form() {
        for (number, expected) in [
            ("0.0", "0.0"),
            ("-0.0", "-0.0"),
            ("-0e-5", "-0.0"),
            ("0e5", "0.0"),
            ("1E5", "100000.0"),
            ("1.50", "1.5"),
            ("4.35", "4.35"),
            ("100.00", "100.0"),
            ("123456.789e3", "123456789.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0.00012345", "0.00012345"),
            ("-1e-10", "-1e-10"),
            ("1E-7", "1e-07"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("12345678901234567.0", "1.2345678901234568e+16"),
            ("6.02214076e23", "6.02214076e+23"),
            ("1e100", "1e+100"),
            ("264364208417789.125", "264364208417789.12"),
            ("1125899906842624.25", "1125899906842624.2"),
            ("-1125899906842624.75", "-1125899906842624.8"),
            ("5.9604644775390625e-08", "5.960464477539063e-08"),
            ("5e-324", "5e-324"),
            ("2e-324", "0.0"),
            ("0.1000000000000000055", "0.1"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("1.7976931348623158e308", "1.7976931348623157e+308"),
            ("1e400", "Infinity"),
            ("-1e400", "-Infinity"),
        ] {
            let mut out = String::new();
            push(number, &mut out);
            assert_eq!(out, expected, "{number}");
        }
    }
}
