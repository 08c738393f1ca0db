//! JSON merge patch (RFC 7396).

use super::members::Members;
use super::tree::Tree;

/// Returns the target after the patch. Existing members keep their place; new members come last.
///
/// If either text is nested more than [`DEPTH_MAX`](super::DEPTH_MAX) levels deep, returns the target unchanged. The
/// result is never nested deeper than the deeper of the two.
#[must_use]
pub fn merge_patch(target: &str, patch: &str) -> String {
    let (Ok(parsed), Ok(patch)) = (Tree::parse(target), Tree::parse(patch)) else {
        return target.to_owned();
    };
    let mut out = String::with_capacity(target.len());
    merge(parsed, patch).write(&mut out);
    out
}

fn merge<'a>(target: Tree<'a>, patch: Tree<'a>) -> Tree<'a> {
    let Tree::Object(patch) = patch else {
        return patch;
    };
    let mut members = match target {
        Tree::Object(members) => members,
        Tree::Scalar(_) | Tree::Array(_) => Box::new(Members::default()),
    };
    for (literal, value) in patch.into_iter() {
        let name = super::decode(&literal);
        if let Tree::Scalar("null") = value {
            members.remove(&name);
        } else if let Some(present) = members.get_mut(&name) {
            let old = std::mem::replace(present, Tree::NULL);
            *present = merge(old, value);
        } else {
            drop(name);
            members.set(literal, merge(Tree::NULL, value));
        }
    }
    Tree::Object(members)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, "\"bar\"", "\"bar\""),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merge_patch(target, patch), expected, "{target} {patch}");
        }
    }

    #[test]
    fn members_keep_their_place_and_their_text() {
        assert_eq!(
            merge_patch(
                r#" {"z": 1.50, "\u0061": 1E5, "m": [1, 2.0]} "#,
                r#"{"n": -0, "a": 1e05, "z": {"x": [null], "y": null}}"#
            ),
            r#"{"z":{"x":[null]},"\u0061":1e05,"m":[1,2.0],"n":-0}"#
        );
    }

    fn reference(target: Value, patch: Value) -> Value {
        let Value::Object(patch) = patch else {
            return patch;
        };
        let mut members = Map::new();
        if let Value::Object(present) = target {
            members = present;
        }
        for (name, value) in patch {
            if value.is_null() {
                members.remove(&name);
            } else {
                let old = members.remove(&name).unwrap_or_default();
                members.insert(name, reference(old, value));
            }
        }
        Value::Object(members)
    }

    fn value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<i8>().prop_map(Value::from),
            "[a\"é]{0,2}".prop_map(Value::from)
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|members| Value::from(Map::from_iter(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_merge_is_that_of_the_rfc(target in value(), patch in value()) {
            let merged = merge_patch(&target.to_string(), &patch.to_string());
            let expected = reference(target, patch);
            prop_assert_eq!(serde_json::from_str::<Value>(&merged).unwrap(), expected);
        }
    }
}
