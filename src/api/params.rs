//! Query parameters, taken by name.
//!
//! A parameter that no handler takes is rejected. Lists are split at commas before percent-decoding, so that `%2C` is
//! part of a name.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::address::percent_decode;
use super::refusal::Refusal;
use crate::board::Code;

/// The maximum number of parameters in a query.
const PARAMS_MAX: usize = 64;

/// The parameters of a query that are not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Params {
    raw: Vec<(String, String)>,
}

impl Params {
    /// Splits a query into its parameters.
    pub(crate) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut raw: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| not_utf8(name))?;
            if raw.iter().any(|(taken, _)| *taken == name) {
                return Err(invalid(&name, "is sent twice; send it once"));
            }
            if raw.len() == PARAMS_MAX {
                let detail = format!("the query exceeds {PARAMS_MAX} parameters");
                return Err(Refusal::new(Code::InvalidParameter, detail));
            }
            raw.push((name, value.to_owned()));
        }
        Ok(Self { raw })
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let index = self.raw.iter().position(|(taken, _)| taken == name)?;
        Some(self.raw.swap_remove(index).1)
    }

    /// Returns true if the parameter is present and not taken yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw.iter().any(|(left, _)| left == name)
    }

    /// Returns true if the parameter is present, not taken yet, and begins with this text.
    pub(crate) fn begins(&self, name: &str, beginning: &str) -> bool {
        let begins = |raw: &str| decode(raw).is_some_and(|text| text.starts_with(beginning));
        self.raw.iter().any(|(left, raw)| left == name && begins(raw))
    }

    /// Takes the parameter as text.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        let Some(raw) = self.take(name) else { return Ok(None) };
        decode(&raw).map(Some).ok_or_else(|| not_utf8(name))
    }

    /// Takes the parameter, parsed by its type.
    pub(crate) fn parsed<T>(&mut self, name: &str) -> Result<Option<T>, Refusal>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| invalid(name, error))
    }

    /// Takes the parameter as a whole number within bounds.
    pub(crate) fn number(
        &mut self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let (min, max) = (bounds.start(), bounds.end());
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && bounds.contains(number));
        let expected = match *max {
            u64::MAX => format!("must be a whole number of at least {min}"),
            max => format!("must be a whole number from {min} to {max}"),
        };
        number.map(Some).ok_or_else(|| invalid(name, expected))
    }

    /// Takes the parameter as a count from `min` to `max`, saturating at `usize::MAX`.
    pub(crate) fn count(
        &mut self,
        name: &str,
        min: u64,
        max: u64,
    ) -> Result<Option<usize>, Refusal> {
        let number = self.number(name, min..=max)?;
        Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    /// Takes the parameter as `true` or `false`; false if absent.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Refusal> {
        let choices = [("true", true), ("false", false)];
        Ok(self.choice(name, &choices)?.unwrap_or(false))
    }

    /// Takes the parameter as one of these words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        chosen.map(Some).ok_or_else(|| invalid(name, format!("must be one of {}", words())))
    }

    /// Takes the parameter as a list.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(raw) = self.take(name) else { return Ok(None) };
        if raw.is_empty() {
            return Err(invalid(name, "must name at least one value"));
        }
        let items = raw.split(',').map(decode).collect::<Option<Vec<_>>>();
        items.map(Some).ok_or_else(|| not_utf8(name))
    }

    /// Takes the parameter as a list of elements with parts of their own, not percent-decoded yet.
    pub(crate) fn raw_list(&mut self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(raw) = self.take(name) else { return Ok(None) };
        if raw.is_empty() {
            return Err(invalid(name, "must name at least one value"));
        }
        Ok(Some(raw.replace('+', " ").split(',').map(str::to_owned).collect()))
    }

    /// Refuses a parameter that is left, which is unknown.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        let Some((name, _)) = self.raw.first() else { return Ok(()) };
        let detail = format!("unknown parameter '{name}'; remove it or check its spelling");
        Err(Refusal::new(Code::UnknownParameter, detail))
    }
}

/// Refuses the value of a parameter.
pub(crate) fn invalid(name: &str, why: impl Display) -> Refusal {
    Refusal::new(Code::InvalidParameter, format!("'{name}' {why}"))
}

fn not_utf8(name: &str) -> Refusal {
    Refusal::new(Code::InvalidEncoding, format!("'{name}' is not percent-encoded UTF-8"))
}

/// Decodes a part of a query. A `+` is a space, as forms and most clients write it.
fn decode(raw: &str) -> Option<String> {
    percent_decode(raw.replace('+', " ").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::parse(query).unwrap()
    }

    #[test]
    fn a_list_is_split_before_it_is_decoded() {
        let list = params("keys=a,b%2Cc,,%2B").list("keys").unwrap();
        assert_eq!(list, Some(vec!["a".into(), "b,c".into(), String::new(), "+".into()]));
    }

    #[test]
    fn a_parameter_that_nobody_takes_is_refused() {
        let mut params = params("limit=5&limt=6");
        assert_eq!(params.number("limit", 1..=10).unwrap(), Some(5));
        assert_eq!(params.finish().unwrap_err().code(), Code::UnknownParameter);
    }

    #[test]
    fn a_number_is_digits_within_its_bounds() {
        for wrong in ["", "-1", "+1", "0", "11", "1.0", "1e0", "99999999999999999999"] {
            let refused = params(&format!("n={wrong}")).number("n", 1..=10).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidParameter, "{wrong}");
        }
    }

    #[test]
    fn a_parameter_given_twice_is_refused() {
        assert_eq!(Params::parse("a=1&a=1").unwrap_err().code(), Code::InvalidParameter);
    }
}
