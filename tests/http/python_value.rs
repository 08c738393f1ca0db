//! JSON text as Python's `json.loads` reads it: key order kept, the last of equal keys wins.

use std::fmt;

use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Python {
    None,
    Bool(bool),
    Int(String),
    /// The bits, so that `-0.0` is not `0.0`.
    Float(u64),
    Str(String),
    List(Vec<Python>),
    Dict(Vec<(String, Python)>),
}

/// Fails on what is no JSON, such as Python's own `NaN` and lone surrogates.
pub(crate) fn loads(text: &str) -> Result<Python, Error> {
    let text = text.trim();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let members = members(text)?.into_iter();
            let members = members.map(|(name, value)| Ok((name, loads(&value)?)));
            Python::Dict(members.collect::<Result<_, Error>>()?)
        }
        Some(b'[') => {
            let items = elements(text)?;
            Python::List(items.iter().map(|item| loads(item)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Python::Str(serde_json::from_str(text)?),
        _ => {
            let scalar: &RawValue = serde_json::from_str(text)?;
            scalar_of(scalar.get())?
        }
    })
}

fn scalar_of(text: &str) -> Result<Python, Error> {
    Ok(match text {
        "null" => Python::None,
        "true" | "false" => Python::Bool(text == "true"),
        _ if text.contains(['.', 'e', 'E']) => {
            let double: f64 = text.parse().map_err(Error::custom)?;
            Python::Float(double.to_bits())
        }
        "-0" => Python::Int("0".to_owned()),
        _ => Python::Int(text.to_owned()),
    })
}

/// An array's elements as text.
pub(crate) fn elements(text: &str) -> Result<Vec<String>, Error> {
    let items: Vec<&RawValue> = serde_json::from_str(text)?;
    Ok(items.into_iter().map(|item| item.get().to_owned()).collect())
}

/// An object's members as text, each name once.
pub(crate) fn members(text: &str) -> Result<Vec<(String, String)>, Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut members: Self::Value = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                let value = value.get().to_owned();
                match members.iter_mut().find(|(known, _)| *known == name) {
                    Some(member) => member.1 = value,
                    None => members.push((name, value)),
                }
            }
            Ok(members)
        }
    }
    let mut reader = Deserializer::from_str(text);
    let members = reader.deserialize_map(Members)?;
    reader.end()?;
    Ok(members)
}

#[test]
fn values_are_compared_as_python_compares_its_own_text() {
    let same = |a: &str, b: &str| loads(a).unwrap() == loads(b).unwrap();
    assert!(same("[1E5, -0, 1.0]", " [100000.0,0, 1e0] "));
    assert!(same(r#"{"a":1,"b":2,"\u0061":3}"#, r#"{"a": 3, "b": 2}"#));
    assert!(!same(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
    assert!(!same("1", "1.0"));
    assert!(!same("0.0", "-0.0"));
    assert!(!same("9007199254740993", "9007199254740992"));
    for text in ["NaN", "[Infinity]", r#""\ud83d""#, "01", "{} x", ""] {
        assert!(loads(text).is_err(), "{text}");
    }
}
