//! Numbers by value, compared as in Python: integers exactly, floats as doubles.

use std::fmt;

use num_bigint::BigInt;

use super::INTEGER_DIGITS_MAX;

/// A number's value: equal exactly when Python finds the numbers equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exact(Value);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Small(i64),
    /// A whole number outside `i64`, in decimal.
    Large(Box<str>),
    /// A double that is not a whole number, by its bits.
    Fraction(u64),
}

impl Exact {
    /// Parses a JSON number. `None` if the text is not a number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !is_number(text) {
            return None;
        }
        if is_integer(text) {
            return Some(Self(Value::whole(text)));
        }
        let double = to_f64(text);
        Some(Self(if double.fract() == 0.0 {
            // The formatter writes a double's integer to its last digit.
            Value::whole(&format!("{double:.0}"))
        } else {
            Value::Fraction(double.to_bits())
        }))
    }
}

/// Writes the same text for all forms of a value.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::Small(number) => number.fmt(f),
            Value::Large(digits) => f.write_str(digits),
            Value::Fraction(bits) => fmt::Debug::fmt(&f64::from_bits(*bits), f),
        }
    }
}

impl Value {
    fn whole(digits: &str) -> Self {
        digits.parse().map_or_else(|_| Self::Large(digits.into()), Self::Small)
    }
}

/// The least number from which a double may stand for another whole number too.
const INEXACT_FROM: u64 = 1 << f64::MANTISSA_DIGITS;

/// Returns the value of a JSON number that is whole and not negative, such as `7` and `7.0`. `None` beyond `u64`, and for a
/// number with a fraction or an exponent from 2⁵³ on, which may have been rounded.
#[must_use]
pub fn whole(text: &str) -> Option<u64> {
    let whole: u64 = match Exact::parse(text)?.0 {
        Value::Small(number) => number.try_into().ok(),
        Value::Large(digits) => digits.parse().ok(),
        Value::Fraction(_) => None,
    }?;
    (is_integer(text) || whole < INEXACT_FROM).then_some(whole)
}

/// Returns the double nearest to a JSON number, infinite if the number is too large. NaN if the text is not a number.
#[must_use]
pub fn to_f64(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Adds two JSON numbers: integers exactly, others as doubles, written with the fewest digits that give the same
/// double.
///
/// `None` if the sum is infinite, if an integer has more than [`INTEGER_DIGITS_MAX`] digits, or if a text is not a
/// number.
#[must_use]
pub fn sum(a: &str, b: &str) -> Option<String> {
    if !is_number(a) || !is_number(b) {
        return None;
    }
    if is_integer(a) && is_integer(b) {
        // The time to parse a longer integer grows with the square of its length.
        if digits(a).max(digits(b)) > INTEGER_DIGITS_MAX {
            return None;
        }
        let sum = (a.parse::<BigInt>().ok()? + b.parse::<BigInt>().ok()?).to_string();
        return (digits(&sum) <= INTEGER_DIGITS_MAX).then_some(sum);
    }
    let sum = to_f64(a) + to_f64(b);
    sum.is_finite().then(|| format!("{sum:?}"))
}

fn digits(integer: &str) -> usize {
    integer.trim_start_matches('-').len()
}

/// Returns true if this JSON number has neither fraction nor exponent.
pub(super) fn is_integer(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}

/// Returns true if the whole text is a number by JSON's grammar.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equal(a: &str, b: &str) -> bool {
        Exact::parse(a).unwrap() == Exact::parse(b).unwrap()
    }

    #[test]
    fn equal_values_are_equal_in_every_form() {
        let long = format!("1{}", "0".repeat(300));
        for (a, b) in [
            ("2", "2.0"),
            ("2.0", "2e0"),
            ("2", "0.2E+1"),
            ("-0", "0"),
            ("0", "-0.0"),
            ("-0e9", "0e400"),
            ("9007199254740993.0", "9007199254740992"),
            ("9223372036854775808", "9223372036854775808.0"),
            ("-9223372036854775808", "-9.223372036854775808e18"),
            ("0.1", "0.10000000000000000555"),
            ("1e-400", "0"),
            (&long, &long),
        ] {
            assert!(equal(a, b), "{a} {b}");
        }
    }

    #[test]
    fn near_values_are_not_equal() {
        let long = format!("1{}", "0".repeat(300));
        for (a, b) in [
            ("9007199254740993", "9007199254740992.0"),
            ("9007199254740993", "9007199254740992"),
            ("18446744073709551616", "18446744073709551617"),
            ("0.1", "0.2"),
            ("1", "-1"),
            ("1.5", "1"),
            // As in Python, where 10**300 != 1e300.
            (&long, "1e300"),
        ] {
            assert!(!equal(a, b), "{a} {b}");
        }
    }

    #[test]
    fn a_large_double_equals_its_own_expansion() {
        let expansion = format!("{:.0}", 1e308_f64);
        assert_eq!(expansion.len(), 309);
        assert!(expansion.starts_with("100000000000000001097906362944045541740492309677311846336"));
        assert!(equal("1e308", &expansion));
        assert!(!equal("1e308", &format!("1{}", "0".repeat(308))));
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        for text in [
            "", "-", "+1", "01", "-01", ".5", "5.", "1e", "1e+", "NaN", "inf", "Infinity", "0x1",
            "1_0", " 1", "1 ", "1e1.5", "--1", "true", "\"1\"", "٣",
        ] {
            assert_eq!(Exact::parse(text), None, "{text}");
        }
    }

    #[test]
    fn integers_are_added_exactly() {
        let nines = "9".repeat(INTEGER_DIGITS_MAX);
        for (a, b, expected) in [
            ("1", "2", "3"),
            ("-0", "0", "0"),
            ("5", "-7", "-2"),
            ("9007199254740993", "1", "9007199254740994"),
            ("18446744073709551615", "1", "18446744073709551616"),
            (
                "170141183460469231731687303715884105727",
                "1",
                "170141183460469231731687303715884105728",
            ),
            (&nines, "-0", &nines),
            (&format!("-{nines}"), &nines, "0"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} {b}");
        }
    }

    #[test]
    fn other_numbers_are_added_as_doubles() {
        for (a, b, expected) in [
            ("1", "2.0", "3.0"),
            ("0.1", "0.2", "0.30000000000000004"),
            ("1e16", "0", "1e16"),
            ("1E5", "-1e5", "0.0"),
            ("-0.0", "-0", "-0.0"),
            ("9007199254740993", "0.0", "9007199254740992.0"),
            ("5e-324", "0", "5e-324"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} {b}");
        }
    }

    #[test]
    fn what_no_client_could_read_is_no_sum() {
        let nines = "9".repeat(INTEGER_DIGITS_MAX);
        let longer = "1".repeat(INTEGER_DIGITS_MAX + 1);
        for (a, b) in [
            (nines.as_str(), "1"),
            (&format!("-{nines}"), "-1"),
            (&longer, "-1"),
            ("1.7976931348623157e308", "1e308"),
            (&nines, "0.5"),
            ("1", "x"),
            ("", "1"),
            ("inf", "0.0"),
        ] {
            assert_eq!(sum(a, b), None, "{a} {b}");
            assert_eq!(sum(b, a), None, "{b} {a}");
        }
    }

    proptest! {
        #[test]
        fn any_sum_is_a_number_and_that_of_the_machine(a in any::<i64>(), b in any::<i64>(), x in any::<f64>()) {
            prop_assert_eq!(sum(&a.to_string(), &b.to_string()), Some((i128::from(a) + i128::from(b)).to_string()));
            prop_assume!(x.is_finite());
            let added = sum(&format!("{x:?}"), "0.0").unwrap();
            prop_assert!(is_number(&added));
            prop_assert_eq!(to_f64(&added).to_bits(), (x + 0.0).to_bits());
        }

        #[test]
        fn any_double_equals_its_shortest_and_its_full_form(double in any::<f64>()) {
            prop_assume!(double.is_finite());
            let shortest = format!("{double:e}");
            let full = format!("{double:.1074}");
            let rounded = format!("{double:.0}");
            prop_assert!(equal(&shortest, &full));
            prop_assert_eq!(equal(&shortest, &rounded), double.fract() == 0.0);
        }

        #[test]
        fn any_integer_equals_itself_only(a in any::<i128>(), b in any::<i128>()) {
            prop_assert_eq!(equal(&a.to_string(), &b.to_string()), a == b);
            prop_assert!(equal(&a.to_string(), &a.to_string()));
        }

        #[test]
        fn numbers_are_those_of_the_parser(text in "-?[0-9.eE+-]{0,8}") {
            let parsed = crate::syntax(text.as_bytes());
            prop_assert_eq!(Exact::parse(&text).is_some(), parsed == Ok(text.as_str()));
        }
    }
}
