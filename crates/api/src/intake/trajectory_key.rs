//! Keyed trajectory steps: the original's `add_trajectories(key, value)` as one item.

use blackboard_board::json;
use blackboard_board::json::{Kind, Unsupported};
use blackboard_board::{InvalidItem, Item};

/// The pointer of a value that is stored beside its key.
const VALUE: &str = "/value";

/// Adds this key as the first member of an object without a member `key`. Any other value becomes
/// `{"key":…,"value":…}`. The pointer of a fault is that of the value as sent.
pub(crate) fn keyed(key: &str, text: &str) -> Result<Item, InvalidItem> {
    let mut keyed = String::from("{\"key\":");
    json::quote(key, &mut keyed);
    if json::kind(text) == Kind::Object && json::get(text, "key").is_none() {
        if json::members(text).next().is_some() {
            keyed.push(',');
        }
        let (_, rest) = text.split_once('{').unwrap_or(("", "}"));
        keyed.push_str(rest);
        return Item::from_json(&keyed);
    }
    keyed.push_str(",\"value\":");
    keyed.push_str(text);
    keyed.push('}');
    Item::from_json(&keyed).map_err(as_sent)
}

fn as_sent(invalid: InvalidItem) -> InvalidItem {
    let InvalidItem::Unsupported(Unsupported { pointer, line, reason }) = invalid else {
        return invalid;
    };
    let pointer = pointer.strip_prefix(VALUE).map(str::to_owned).unwrap_or(pointer);
    InvalidItem::Unsupported(Unsupported { pointer, line, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blackboard_board::{Code, ITEM_BYTES_MAX};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(keyed("k", text).unwrap().text(), expected, "{text}");
    }

    fn refused(text: &str) -> (Code, String) {
        let invalid = keyed("k", text).unwrap_err();
        let code = invalid.code();
        let pointer = if let InvalidItem::Unsupported(unsupported) = invalid {
            unsupported.pointer
        } else {
            String::new()
        };
        (code, pointer)
    }

    #[test]
    fn an_object_gets_its_key_first_and_stays_as_it_was_sent() {
        check(r#"{"z":1E5,"a":[1.50]}"#, r#"{"key":"k","z":1E5,"a":[1.50]}"#);
        check(r#"{ "a": {"key": 1} }"#, r#"{"key":"k", "a": {"key": 1} }"#);
        check("{\n  \"a\": 1\n}", r#"{"key":"k","a": 1}"#);
        check("{}", r#"{"key":"k"}"#);
        check("{ }", r#"{"key":"k" }"#);
    }

    #[test]
    fn any_other_value_stands_beside_its_key() {
        for text in [
            "5.0",
            "null",
            "true",
            r#""text""#,
            "[1,[]]",
            r#"{"a":1,"key":"own"}"#,
            r#"{"k\u0065y":1}"#,
        ] {
            check(text, &format!(r#"{{"key":"k","value":{text}}}"#));
        }
    }

    #[test]
    fn a_key_may_have_any_character() {
        let item = keyed("\"\n/é,", "{}").unwrap();
        assert_eq!(json::decode(item.get("key").unwrap()), "\"\n/é,");
    }

    #[test]
    fn bounds_hold_for_what_is_stored_and_name_what_was_sent() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(keyed("k", &nested(127)).is_ok());
        assert_eq!(refused(&nested(128)), (Code::TooDeep, "/0".repeat(127)));
        let deep = |levels| format!("{{\"a\":{}}}", nested(levels));
        assert!(keyed("k", &deep(127)).is_ok());
        assert_eq!(refused(&deep(128)).0, Code::TooDeep);
        assert_eq!(refused("1e400"), (Code::UnsupportedValue, String::new()));
        for text in [r#"{"a":["\ud800"]}"#, r#"{"a":["\ud800"],"key":1}"#] {
            assert_eq!(refused(text), (Code::UnsupportedValue, "/a/0".to_owned()));
        }
        let long = format!("\"{}\"", "x".repeat(ITEM_BYTES_MAX - 2));
        assert_eq!(refused(&long).0, Code::ItemTooLarge);
    }
}
