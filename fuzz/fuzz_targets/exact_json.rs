//! Arbitrary bytes as JSON: no panic, and rewritten text has the same value.
#![no_main]

use exact_json::{DEPTH_MAX, check, equal, json_patch, merge_patch, one_line, python, syntax};
use libfuzzer_sys::fuzz_target;

/// The largest document that a patch may make.
const PATCHED_BYTES_MAX: usize = 1 << 20;

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
    assert!(syntax(merge_patch(document, patch).as_bytes()).is_ok());
    if let Ok(patched) = json_patch(document, patch, PATCHED_BYTES_MAX) {
        assert!(syntax(patched.as_bytes()).is_ok());
    }
});
