//! Tests of unchecked text: any result is allowed, but every call returns.

use proptest::prelude::*;

use super::*;

#[expect(unused_must_use, reason = "that it comes back is all that is asked")]
fn try_all(a: &str, b: &str) {
    let checked = check(a, DEPTH_MAX).is_ok() && syntax(a.as_bytes()).is_ok();
    kind(a);
    assert!(members(a).count() <= a.len());
    assert!(elements(a).count() <= a.len());
    get(a, b);
    decode(a);
    one_line(a);
    to_f64(a);
    Exact::parse(a);
    let same = equal(a, a);
    assert!(same || !checked);
    equal(a, b);
    merge_patch(a, b);
    json_patch(a, b, 1 << 16);
    json_patch(a, &format!("[{b}]"), 1 << 16);
}

#[test]
fn a_whole_number_is_never_a_rounded_one() {
    for (text, number) in [
        ("7", Some(7)),
        ("7.0", Some(7)),
        ("70e-1", Some(7)),
        ("18446744073709551615", Some(u64::MAX)),
        ("9007199254740991.0", Some(9_007_199_254_740_991)),
        ("9007199254740993", Some(9_007_199_254_740_993)),
        ("9007199254740993.0", None),
        ("9007199254740992.0", None),
        ("1e16", None),
        ("7.5", None),
        ("-1", None),
        ("18446744073709551616", None),
    ] {
        assert_eq!(whole(text), number, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_comes_back(a in any::<String>(), b in any::<String>()) {
        try_all(&a, &b);
        syntax(a.as_bytes()).ok();
    }

    #[test]
    fn any_text_like_json_comes_back(
        a in r#"([\[\]{}",:\\ \n-]|"a"|"é":|[0-9.eE]{1,3}|true|\\ud8[0-9a]{2}|中){0,24}"#,
        b in r#"([\[\]{}",:\\ \n-]|"op":"(add|copy)",|"path":"/a",|"from":"",|"value":){0,16}"#,
    ) {
        try_all(&a, &b);
    }

    #[test]
    fn a_document_cut_anywhere_comes_back(cut in 0_usize..120) {
        let text = r#"{"a" : [1, -2.5e3, "x\"\ud83d\ude80é"], "b": {"op": "add", "path": "/~1"}, "c": [[{}], null, true]}"#;
        let (head, tail) = text.split_at(text.floor_char_boundary(cut));
        try_all(head, tail);
        try_all(tail, head);
    }
}

#[test]
fn no_depth_is_too_much() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let open_only = open.repeat(100_000);
        assert!(check(&deep, DEPTH_MAX).is_err());
        assert_eq!(check(&deep, usize::MAX), Ok(()));
        assert_eq!(members(&deep).count() + elements(&deep).count(), 1);
        try_all(&deep, &open_only);
        try_all(&open_only, &deep);
    }
}

#[test]
fn objects_of_a_hundred_thousand_names_are_read_in_good_time() {
    let members: Vec<_> = (0..100_000).map(|i| format!("\"k{}\":{i}", i % 60_000)).collect();
    let object = format!("{{{}}}", members.join(","));
    assert_eq!(check(&object, 1), Ok(()));
    assert_eq!(super::members(&object).count(), 100_000);
    assert_eq!(get(&object, "k7"), Some("60007"));
    let merged = merge_patch(&object, &object);
    assert_eq!(super::members(&merged).count(), 60_000);
    assert!(equal(&merged, &object));
}
