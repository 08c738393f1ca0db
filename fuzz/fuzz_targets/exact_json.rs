//! Arbitrary bytes as JSON: no panic, rewritten text has the same value, and merge patches give what `serde_json` gives.
//!
//! With `EXACT_JSON_TELL` in the environment, each document is printed with its text as Python would write it, as a
//! line of JSON, so that a running Python can check it.
#![no_main]

use std::env;
use std::sync::LazyLock;

use exact_json::{DEPTH_MAX, check, equal, json_patch, merge_patch, one_line, python, syntax};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// The largest document that a patch may make.
const PATCHED_BYTES_MAX: usize = 1 << 20;

static TELLS: LazyLock<bool> = LazyLock::new(|| env::var_os("EXACT_JSON_TELL").is_some());

/// RFC 7396, as it stands there.
fn merged(document: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut members = match document {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
        } else {
            let before = members.remove(&name).unwrap_or_default();
            members.insert(name, merged(before, value));
        }
    }
    Value::Object(members)
}

fuzz_target!(|bytes: &[u8]| {
    // The first value is the document, a second one after a NUL the patch.
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let [document, patch] = [(); 2].map(|()| parts.next().unwrap_or(b"{}"));
    let (Ok(document), Ok(patch)) = (syntax(document), syntax(patch)) else { return };
    if check(document, DEPTH_MAX).is_err() || check(patch, DEPTH_MAX).is_err() {
        return;
    }
    let line = one_line(document);
    assert!(equal(&line, document));
    let (mut text, mut literal) = (String::new(), String::from('"'));
    python::dumps(document, &mut text);
    python::Literal::default().dumps(document, &mut literal);
    literal.push('"');
    assert_eq!(exact_json::decode(&literal), text);
    if *TELLS {
        println!("{}", json!([document, text]));
    }
    let patched = merge_patch(document, patch);
    // It refuses what it cannot hold, such as 1e999.
    if let [Ok(document), Ok(patch)] = [document, patch].map(serde_json::from_str) {
        assert_eq!(serde_json::from_str::<Value>(&patched).ok(), Some(merged(document, patch)));
    }
    if let Ok(patched) = json_patch(document, patch, PATCHED_BYTES_MAX) {
        assert!(syntax(patched.as_bytes()).is_ok());
    }
});
