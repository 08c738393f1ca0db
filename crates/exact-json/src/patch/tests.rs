//! Tests of JSON Patch: each operation, excessive patches, and random ones against a plain model.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn patched(target: &str, patch: &str) -> Result<String, PatchError> {
    json_patch(target, patch, 1 << 20)
}

fn fault(target: &str, operation: &str) -> Fault {
    let error = patched(target, &format!("[{operation}]")).unwrap_err();
    let PatchError::Refused { index: 0, fault } = error else {
        panic!("{error}");
    };
    fault
}

#[test]
fn each_operation_does_what_the_rfc_says() {
    for (target, patch, expected) in [
        ("{\"a\": 1}", r#"{"op":"add","path":"/b","value":[1.0]}"#, r#"{"a":1,"b":[1.0]}"#),
        ("{\"a\":1,\"b\":2}", r#"{"op":"add","path":"/a","value":3}"#, r#"{"a":3,"b":2}"#),
        ("[1,2]", r#"{"op":"add","path":"/1","value":9}"#, "[1,9,2]"),
        ("[1,2]", r#"{"op":"add","path":"/2","value":9}"#, "[1,2,9]"),
        ("[1,2]", r#"{"op":"add","path":"/-","value":9}"#, "[1,2,9]"),
        ("[1,2]", r#"{"op":"add","path":"","value":{"x":null}}"#, r#"{"x":null}"#),
        ("{\"a\":{}}", r#"{"op":"add","path":"/a/~1~0","value":0}"#, r#"{"a":{"/~":0}}"#),
        ("{\"\":1}", r#"{"op":"replace","path":"/","value":2}"#, r#"{"":2}"#),
        ("{\"a\":1,\"b\":2}", r#"{"op":"remove","path":"/a"}"#, r#"{"b":2}"#),
        ("[1,2,3]", r#"{"op":"remove","path":"/1"}"#, "[1,3]"),
        ("{\"a\":1,\"b\":2}", r#"{"op":"replace","path":"/a","value":1E5}"#, r#"{"a":1E5,"b":2}"#),
        ("[1]", r#"{"op":"replace","path":"","value":"x"}"#, "\"x\""),
        (
            "{\"a\":{\"b\":1},\"c\":2}",
            r#"{"op":"move","from":"/a/b","path":"/d"}"#,
            r#"{"a":{},"c":2,"d":1}"#,
        ),
        ("[1,2,3]", r#"{"op":"move","from":"/0","path":"/2"}"#, "[2,3,1]"),
        ("{\"a\":1}", r#"{"op":"move","from":"/a","path":"/a"}"#, r#"{"a":1}"#),
        ("{\"a\":{\"b\":1}}", r#"{"op":"move","from":"/a/b","path":"/a"}"#, r#"{"a":1}"#),
        ("{\"a\":[1]}", r#"{"op":"copy","from":"/a","path":"/a/-"}"#, r#"{"a":[1,[1]]}"#),
        ("{\"a\":[1]}", r#"{"op":"copy","from":"","path":"/b"}"#, r#"{"a":[1],"b":{"a":[1]}}"#),
        (
            "{\"a\":[1,{\"b\":2}]}",
            r#"{"op":"test","path":"/a","value":[1.0,{"b":2e0}]}"#,
            r#"{"a":[1,{"b":2}]}"#,
        ),
        (
            "{\"\\u0061\":1}",
            r#"{"op":"test","path":"/a","value":1,"extra":true}"#,
            r#"{"\u0061":1}"#,
        ),
    ] {
        assert_eq!(
            patched(target, &format!("[{patch}]")).as_deref(),
            Ok(expected),
            "{target} {patch}"
        );
    }
    assert_eq!(patched(" [ 1.50 ] ", "[]").as_deref(), Ok("[1.50]"));
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    for (target, pointer) in [
        ("{}", "/a"),
        ("[1]", "/1"),
        ("[1]", "/-"),
        ("[1]", "/00"),
        ("[1]", "/-1"),
        ("[1]", "/x"),
        ("{\"a\":1}", "/a/b"),
    ] {
        let missing = Fault::PathMissing { pointer: pointer.to_owned() };
        for operation in [
            format!(r#"{{"op":"remove","path":"{pointer}"}}"#),
            format!(r#"{{"op":"replace","path":"{pointer}","value":1}}"#),
            format!(r#"{{"op":"test","path":"{pointer}","value":1}}"#),
            format!(r#"{{"op":"move","from":"{pointer}","path":"/q"}}"#),
            format!(r#"{{"op":"copy","from":"{pointer}","path":"/q"}}"#),
        ] {
            assert_eq!(fault(target, &operation), missing, "{target} {operation}");
        }
    }
    for (target, pointer) in [("{}", "/a/b"), ("[1]", "/2"), ("[1]", "/01"), ("1", "/a")] {
        let operation = format!(r#"{{"op":"add","path":"{pointer}","value":1}}"#);
        let missing = Fault::PathMissing { pointer: pointer.to_owned() };
        assert_eq!(fault(target, &operation), missing, "{target} {operation}");
    }
}

#[test]
fn what_is_no_operation_is_refused() {
    for (operation, expected) in [
        ("1", Fault::NotAnObject),
        ("[]", Fault::NotAnObject),
        ("{}", Fault::MissingMember { name: "op" }),
        (r#"{"op":1}"#, Fault::NotAString { name: "op" }),
        (r#"{"op":"Add"}"#, Fault::UnknownOperation { op: "Add".to_owned() }),
        (r#"{"op":"add","value":1}"#, Fault::MissingMember { name: "path" }),
        (r#"{"op":"add","path":"/a"}"#, Fault::MissingMember { name: "value" }),
        (r#"{"op":"copy","path":"/a"}"#, Fault::MissingMember { name: "from" }),
        (r#"{"op":"remove","path":["a"]}"#, Fault::NotAString { name: "path" }),
        (r#"{"op":"remove","path":"a"}"#, Fault::BadPointer { pointer: "a".to_owned() }),
        (r#"{"op":"remove","path":"/~2"}"#, Fault::BadPointer { pointer: "/~2".to_owned() }),
        (r#"{"op":"remove","path":""}"#, Fault::RemovesAll),
        (r#"{"op":"move","from":"","path":"/b"}"#, Fault::MovesIntoItself),
        (r#"{"op":"move","from":"/a","path":"/a/b"}"#, Fault::MovesIntoItself),
        (
            r#"{"op":"test","path":"/a","value":{"b":2}}"#,
            Fault::TestFailed { pointer: "/a".to_owned() },
        ),
    ] {
        assert_eq!(fault(r#"{"a":{"b":1}}"#, operation), expected, "{operation}");
    }
    assert_eq!(patched("{}", "{}"), Err(PatchError::NotAnArray));
}

#[test]
fn the_refusal_names_the_operation() {
    let patch = r#"[{"op":"add","path":"/a","value":1},{"op":"test","path":"/a","value":2}]"#;
    let refused = patched("{}", patch).unwrap_err();
    assert_eq!(refused.to_string(), r#"operation 1: the value at "/a" is not the tested one"#);
}

#[test]
fn copies_that_double_are_refused() {
    let double = r#"{"op":"copy","from":"","path":"/-"},"#.repeat(60);
    let patch = format!("[{}]", double.trim_end_matches(','));
    let refused = json_patch("[\"xxxxxxxxxxxxxxxx\"]", &patch, 1 << 20).unwrap_err();
    let PatchError::Refused { index, fault } = refused else { panic!() };
    assert_eq!(fault, Fault::CopiesTooMuch { bytes_max: 1 << 20 });
    assert!(index < 20);
}

#[test]
fn a_result_that_is_too_long_is_refused() {
    let patch = r#"[{"op":"add","path":"/a","value":"0123456789"}]"#;
    assert!(json_patch("{}", patch, 18).is_ok());
    assert_eq!(json_patch("{}", patch, 17), Err(PatchError::TooLarge { bytes: 18, bytes_max: 17 }));
}

#[test]
fn a_result_that_is_too_deep_is_refused() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let put = |levels: usize| format!(r#"[{{"op":"add","path":"/a","value":{}}}]"#, nested(levels));
    assert!(patched("{}", &put(DEPTH_MAX - 1)).is_ok());
    let too_deep = |index| PatchError::Refused { index, fault: Fault::TooDeep };
    assert_eq!(patched("{}", &put(DEPTH_MAX)), Err(too_deep(0)));
    assert_eq!(patched("{}", &put(DEPTH_MAX + 1)), Err(too_deep(0)));
    assert_eq!(patched(&nested(DEPTH_MAX + 1), "[]"), Err(PatchError::TargetTooDeep));

    let wrap = r#"{"op":"add","path":"/b","value":{}},{"op":"move","from":"/a","path":"/b/a"},{"op":"move","from":"/b","path":"/a"},"#;
    let patch = format!("[{}]", wrap.repeat(1_000).trim_end_matches(','));
    assert!(matches!(
        patched("{\"a\":{}}", &patch),
        Err(PatchError::Refused { fault: Fault::TooDeep, .. })
    ));
    let long = format!(r#"[{{"op":"remove","path":"{}"}}]"#, "/a".repeat(100_000));
    assert!(patched("{}", &long).is_err());
}

#[test]
fn many_edits_at_the_front_of_a_long_array_take_good_time() {
    let target = format!("[{}0]", "0,".repeat(100_000));
    let add = r#"{"op":"add","path":"/0","value":1},"#.repeat(20_000);
    let remove = r#"{"op":"remove","path":"/1"},"#.repeat(20_000);
    let patch = format!("[{add}{}]", remove.trim_end_matches(','));
    let expected = format!("[1,{}0]", "0,".repeat(99_999));
    assert!(patched(&target, &patch) == Ok(expected));
}

#[test]
fn moving_a_large_value_to_and_fro_is_refused_in_good_time() {
    let target = format!("{{\"a\":[{}0]}}", "0,".repeat(50_000));
    let there_and_back =
        r#"{"op":"move","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/a"},"#;
    let patch = format!("[{}]", there_and_back.repeat(20_000).trim_end_matches(','));
    let refused = json_patch(&target, &patch, 200_000).unwrap_err();
    assert!(matches!(refused, PatchError::Refused { fault: Fault::MovesTooMuch { .. }, .. }));
}

/// Applies an operation to a parsed value, with `serde_json`'s own pointers.
fn model(mut value: Value, operation: &Value) -> Option<Value> {
    let path = operation.get("path")?.as_str()?;
    let given = operation.get("value").cloned();
    let from = operation.get("from").and_then(Value::as_str);
    match operation.get("op")?.as_str()? {
        "add" => model_add(&mut value, path, given?)?,
        "remove" => drop(model_remove(&mut value, path)?),
        "replace" => *value.pointer_mut(path)? = given?,
        "copy" => {
            let copied = value.pointer(from?)?.clone();
            model_add(&mut value, path, copied)?;
        }
        "move" => {
            let from = from?;
            value.pointer(from)?;
            if path.starts_with(&format!("{from}/")) {
                return None;
            }
            if path != from {
                let moved = model_remove(&mut value, from)?;
                model_add(&mut value, path, moved)?;
            }
        }
        _ => {
            if *value.pointer(path)? != given? {
                return None;
            }
        }
    }
    Some(value)
}

fn model_add(value: &mut Value, path: &str, new: Value) -> Option<()> {
    let Some((parent, name)) = path.rsplit_once('/') else {
        *value = new;
        return Some(());
    };
    match value.pointer_mut(parent)? {
        Value::Object(members) => drop(members.insert(name.to_owned(), new)),
        Value::Array(elements) if name == "-" => elements.push(new),
        Value::Array(elements) => {
            let index = name.parse().ok().filter(|&i| i <= elements.len())?;
            elements.insert(index, new);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn model_remove(value: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = path.rsplit_once('/')?;
    match value.pointer_mut(parent)? {
        Value::Object(members) => members.remove(name),
        Value::Array(elements) => {
            let index = name.parse().ok().filter(|&i| i < elements.len())?;
            Some(elements.remove(index))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn small() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0)),
        Just(json!([1, [2]])),
        Just(json!({"a": {"b": 3}})),
        Just(json!({"a": [], "b": "x"})),
    ]
}

fn operation() -> impl Strategy<Value = Value> {
    let path = || {
        prop::sample::select(vec![
            "", "/a", "/b", "/0", "/1", "/-", "/a/a", "/a/b", "/a/0", "/a/-", "/0/a", "/a/a/b",
        ])
    };
    let op = prop::sample::select(vec![
        "add", "add", "add", "remove", "replace", "move", "copy", "test",
    ]);
    (op, path(), path(), small()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn any_patch_does_what_the_model_does(target in small(), operations in prop::collection::vec(operation(), 1..5)) {
        let expected = operations.iter().try_fold(target.clone(), model);
        let found = patched(&target.to_string(), &Value::from(operations).to_string());
        match (expected, found) {
            (Some(expected), Ok(found)) => prop_assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), expected),
            (None, Err(_)) => {}
            (expected, found) => prop_assert!(false, "{:?} but {:?}", expected, found),
        }
    }
}
