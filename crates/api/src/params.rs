//! Query parameters, taken by name.
//!
//! A parameter that no handler takes is rejected. Lists are split at commas after percent-decoding, since the libraries
//! of most clients encode a comma.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::refusal::Refusal;
use blackboard_address::{percent_decode, segment};
use blackboard_board::Code;
use blackboard_suggestion::{known_names, nearest};

/// The words of a flag.
pub(crate) const FLAG: [(&str, bool); 2] = [("true", true), ("false", false)];

/// The maximum number of parameters in a query, repeated ones counted once.
const PARAMS_MAX: usize = 64;

/// The maximum number of names in a list.
pub(crate) const LIST_MAX: usize = 1000;

/// The parameters of a query that are not taken yet.
#[derive(Debug, Default)]
pub struct Params {
    raw: Vec<(String, Vec<String>)>,
    /// The names that were looked for, to list them if there is an unknown one.
    known: Vec<&'static str>,
}

impl Params {
    /// Splits a query into its parameters.
    pub fn parse(query: &str) -> Result<Self, Refusal> {
        let mut raw: Vec<(String, Vec<String>)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| not_utf8(name))?;
            if let Some((_, values)) = raw.iter_mut().find(|(known, _)| *known == name) {
                values.push(value.to_owned());
                continue;
            }
            if raw.len() == PARAMS_MAX {
                let detail = format!("the query exceeds {PARAMS_MAX} parameters");
                return Err(Refusal::new(Code::InvalidParameter, detail));
            }
            raw.push((name, vec![value.to_owned()]));
        }
        Ok(Self { raw, known: Vec::new() })
    }

    /// Creates parameters from names and values, none of them percent-encoded.
    pub fn of(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let raw = pairs.into_iter().map(|(name, value)| (name.to_owned(), vec![segment(&value)]));
        Self { raw: raw.collect(), known: Vec::new() }
    }

    /// Adds a parameter, not percent-encoded.
    pub fn and(mut self, name: &'static str, value: &str) -> Self {
        self.raw.push((name.to_owned(), vec![segment(value)]));
        self
    }

    /// Takes all values of a parameter; empty if it is absent.
    fn take(&mut self, name: &'static str) -> Vec<String> {
        if !self.raw.is_empty() {
            self.known.push(name);
        }
        let index = self.raw.iter().position(|(known, _)| known == name);
        index.map(|index| self.raw.remove(index).1).unwrap_or_default()
    }

    /// Returns true if the parameter is present and not taken yet.
    pub fn has(&self, name: &str) -> bool {
        self.raw.iter().any(|(left, _)| left == name)
    }

    /// Returns true if the parameter is present, not taken yet, and begins with this text.
    pub(crate) fn begins(&self, name: &str, beginning: &str) -> bool {
        let begins = |raw: &String| decode(raw).is_some_and(|text| text.starts_with(beginning));
        self.raw.iter().any(|(left, raw)| left == name && raw.iter().any(begins))
    }

    /// Takes the parameter as text.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        match self.take(name).as_slice() {
            [] => Ok(None),
            [raw] => decode(raw).map(Some).ok_or_else(|| not_utf8(name)),
            _ => Err(invalid(name, "is not a list; send it once")),
        }
    }

    /// Takes the parameter, parsed by its type.
    pub fn parsed<T>(&mut self, name: &'static str) -> Result<Option<T>, Refusal>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| invalid(name, error))
    }

    /// Takes the parameter as a whole number within bounds.
    pub fn number(
        &mut self,
        name: &'static str,
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

    /// Takes the parameter as one of these words.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        let why = || format!("must be one of {}", words().join(", "));
        let near = || nearest(&text, &words()).map(|word| format!("; did you mean '{word}'?"));
        chosen.map(Some).ok_or_else(|| invalid(name, why() + &near().unwrap_or_default()))
    }

    /// Takes the parameter as a list. Repeated parameters are joined; a value that begins with `[` is a JSON array of
    /// strings.
    pub fn list(&mut self, name: &'static str) -> Result<Option<Vec<String>>, Refusal> {
        let values = self.take(name);
        if values.is_empty() {
            return Ok(None);
        }
        let mut list = Vec::new();
        for raw in values {
            let text = decode(&raw).ok_or_else(|| not_utf8(name))?;
            if text.is_empty() {
                return Err(invalid(name, "must name at least one value; the empty list is []"));
            }
            if text.starts_with('[') {
                let strings = serde_json::from_str::<Vec<String>>(&text);
                let why = "begins with '[' and must be a JSON array of strings";
                list.append(&mut strings.map_err(|_| invalid(name, why))?);
            } else {
                list.extend(text.split(',').map(str::to_owned));
            }
            if list.len() > LIST_MAX {
                return Err(invalid(name, format!("takes at most {LIST_MAX} values")));
            }
        }
        Ok(Some(list))
    }

    /// Refuses a parameter that is left, which is unknown.
    pub fn finish(self) -> Result<(), Refusal> {
        let Some((name, _)) = self.raw.first() else { return Ok(()) };
        let detail = format!("unknown parameter '{name}'; {}", known_names(name, &self.known));
        Err(Refusal::new(Code::UnknownParameter, detail))
    }
}

/// Refuses the value of a parameter.
pub fn invalid(name: &str, why: impl Display) -> Refusal {
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
    fn a_list_is_decoded_and_split() {
        let list = |query: &str| params(query).list("keys");
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(list("keys=a,b%2Cc,,%2B+d").unwrap(), names(&["a", "b", "c", "", "+ d"]));
        assert_eq!(list("keys=a&x=1&keys=b%2cc").unwrap(), names(&["a", "b", "c"]));
        assert_eq!(list("keys=%5B%22a,b%22,%22%22%5D&keys=c").unwrap(), names(&["a,b", "", "c"]));
        assert_eq!(list("keys=[]").unwrap(), names(&[]));
        assert_eq!(list("x=1").unwrap(), None);
        for wrong in ["keys=", "keys", "keys=a&keys=", "keys=[a]", "keys=[1]", "keys=[\"a\"],b"] {
            assert_eq!(list(wrong).unwrap_err().code(), Code::InvalidParameter, "{wrong}");
        }
        assert_eq!(list("keys=%ff").unwrap_err().code(), Code::InvalidEncoding);
    }

    #[test]
    fn a_list_is_bounded() {
        let commas = |count: usize| format!("keys={}", "a,".repeat(count - 1) + "a");
        let repeated = |count: usize| vec!["keys=a"; count].join("&");
        for query in [&commas as &dyn Fn(usize) -> String, &repeated] {
            assert_eq!(params(&query(LIST_MAX)).list("keys").unwrap().unwrap().len(), LIST_MAX);
            let refused = params(&query(LIST_MAX + 1)).list("keys").unwrap_err();
            assert_eq!(refused.code(), Code::InvalidParameter);
        }
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
    fn a_parameter_that_is_no_list_is_given_once() {
        let refused = params("a=1&a=1").text("a").unwrap_err();
        assert_eq!(refused.code(), Code::InvalidParameter);
    }
}
