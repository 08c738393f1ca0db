//! Tests of Python's text of chosen documents. `tests/python_text.rs` compares random ones with Python itself.

use proptest::prelude::*;

use super::*;

fn dumped(text: &str) -> String {
    let mut out = String::new();
    dumps(text, &mut out);
    out
}

#[test]
fn separators_and_numbers_are_pythons() {
    for (text, expected) in [
        (
            " \n\t{\r\n  \"a\" : [ 1 ,\t2 ] ,\n  \"b\":{ \"c\" : null } }\n\n",
            r#"{"a": [1, 2], "b": {"c": null}}"#,
        ),
        (r#"{"a":[1,2,{"b":null}],"c":"d"}"#, r#"{"a": [1, 2, {"b": null}], "c": "d"}"#),
        ("[[],{},[{}],true,false]", "[[], {}, [{}], true, false]"),
        (
            r#"{"a":{"b":[1e5,{"c":-0.0}]},"d":1E-7}"#,
            r#"{"a": {"b": [100000.0, {"c": -0.0}]}, "d": 1e-07}"#,
        ),
        ("[-0,0,-1,123456789012345678901234567890]", "[0, 0, -1, 123456789012345678901234567890]"),
        ("1", "1"),
        ("\"x\"", "\"x\""),
    ] {
        assert_eq!(dumped(text), expected);
    }
}

#[test]
fn strings_are_ascii_with_pythons_escapes() {
    for (text, expected) in [
        (r#""plain text""#, r#""plain text""#),
        ("\"中文 🚀\"", r#""\u4e2d\u6587 \ud83d\ude80""#),
        ("\"~\u{7f}\u{80}\u{2028}\u{feff}\u{ffff}\"", r#""~\u007f\u0080\u2028\ufeff\uffff""#),
        (r#""\ud83d\uDE80\u4E2d""#, r#""\ud83d\ude80\u4e2d""#),
        (r#""\"\\\/\b\f\n\r\t""#, r#""\"\\/\b\f\n\r\t""#),
        (
            r#""\u0041\u0022\u005c\u002f\u000a\u0000\u001F\u007f""#,
            r#""A\"\\/\n\u0000\u001f\u007f""#,
        ),
        (r#""\\u0041 \\\\u0041""#, r#""\\u0041 \\\\u0041""#),
        (r#""\ud800x""#, r#""\ud800x""#),
        (
            "\"0123456789abcdef0123456789abcdé0123456789abcdef\"",
            r#""0123456789abcdef0123456789abcd\u00e90123456789abcdef""#,
        ),
    ] {
        assert_eq!(dumped(text), expected);
    }
}

#[test]
fn of_a_repeated_name_the_last_value_stands_at_the_first_place() {
    for (text, expected) in [
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a": 3, "b": 2}"#),
        (
            r#"{"o":{"x":1,"y":2,"x":{"x":0,"x":9}},"o2":[{"k":1,"k":2}]}"#,
            r#"{"o": {"x": {"x": 9}, "y": 2}, "o2": [{"k": 2}]}"#,
        ),
        (r#"{"\u0061":1,"a":[],"\u00e9":1,"é":{}}"#, r#"{"a": [], "\u00e9": {}}"#),
        (r#"[{"a":{},"a":{}},{"a":0}]"#, r#"[{"a": {}}, {"a": 0}]"#),
        (r#"{"":1,"":{"":2,"":3}}"#, r#"{"": {"": 3}}"#),
    ] {
        assert_eq!(dumped(text), expected);
    }
}

#[test]
fn objects_with_many_names_take_good_time() {
    let join = |members: Vec<String>, comma: &str| format!("{{{}}}", members.join(comma));
    let repeated = join((0..200_000).map(|i| format!("\"k{}\":{i}", i % 100_000)).collect(), ",");
    let once = join((0..100_000).map(|i| format!("\"k{i}\": {}", i + 100_000)).collect(), ", ");
    assert!(dumped(&repeated) == once);
    assert!(dumped(&once) == once);
}

#[test]
fn a_list_is_written_like_an_array() {
    let mut out = "x ".to_owned();
    dumps_list([" {\"a\":1,\"a\":2} ", "[]", "\"é\""].into_iter(), &mut out);
    assert_eq!(out, r#"x [{"a": 2}, [], "\u00e9"]"#);
    out.clear();
    dumps_list(iter::empty(), &mut out);
    assert_eq!(out, "[]");
}

#[test]
fn only_the_members_to_be_kept_are_written() {
    let object = r#"{"c":{"x":1},"a":1,"b":2,"\u0061":{"a":3,"b":4}}"#;
    let mut out = String::new();
    dumps_members(object, |name| ["a", "c"].contains(&name), &mut out);
    assert_eq!(out, r#"{"c": {"x": 1}, "a": {"a": 3, "b": 4}}"#);
    out.clear();
    dumps_members(object, |_| false, &mut out);
    assert_eq!(out, "{}");
}

#[test]
fn characters_are_written_as_they_are() {
    for (text, written) in [
        (r#"{"é":"\u4e2d文\ud83d\ude80🚀"}"#, r#"{"é": "中文🚀🚀"}"#),
        (r#"["\u0022\u005c\u002f\/"]"#, r#"["\"\\//"]"#),
        (r#"["\u0000\u001f\n\u007f\u0085"]"#, r#"["\u0000\u001f\n\u007f\u0085"]"#),
        ("[\"a\u{7f}\u{85}\u{2028}\"]", "[\"a\\u007f\\u0085\u{2028}\"]"),
        (r#"{"\u00e9":1,"é":2}"#, r#"{"é": 2}"#),
        (r#"["\ud83d\ud83d\ude80\ude80"]"#, r#"["\ud83d🚀\ude80"]"#),
    ] {
        let mut out = String::new();
        dumps_characters(text, &mut out);
        assert_eq!(out, written, "{text}");
        let mut inside = String::new();
        Literal::new(Characters::Written).dumps(text, &mut inside);
        let said: String = serde_json::from_str(&format!("\"{inside}\"")).unwrap();
        assert_eq!(said, written, "{text}");
    }
}

fn in_literal(text: &str) -> String {
    let mut out = String::new();
    Literal::default().dumps(text, &mut out);
    format!("\"{out}\"")
}

#[test]
fn written_text_can_stand_in_a_string() {
    let texts = [
        r#"{"a":"x\"y\\z\né/\/\u0022\u005c\u0001","b":["0123456789abcdefghij"]}"#,
        r#"{"a":1,"a":{"\"":2,"\u0022":"é🚀"},"b":"\\"}"#,
        "[1.50,-0,true,null,[],{}]",
    ];
    for text in texts {
        assert_eq!(in_literal(text), serde_json::to_string(&dumped(text)).unwrap());
    }
    let mut literal = Literal::default();
    for text in texts.iter().take(2) {
        let (mut inside, mut out) = (String::from("\""), String::new());
        literal.dumps_members(text, |name| name == "a", &mut inside);
        dumps_members(text, |name| name == "a", &mut out);
        assert_eq!(inside + "\"", serde_json::to_string(&out).unwrap());
    }
}

#[test]
fn names_that_look_alike_are_not_one() {
    for count in [3, 15, 16, 17, 18, 40, 400] {
        let members: Vec<_> = (0..count).map(|i| format!("\"n{i}\": {i}")).collect();
        let once = format!("{{{}}}", members.join(", "));
        assert_eq!(dumped(&once), once);
        for repeated in [0, count / 2, count - 1] {
            let twice = format!("{{{}, \"n{repeated}\": {repeated}}}", members.join(", "));
            assert_eq!(dumped(&twice), once, "{count} {repeated}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_written_somehow(text in r#"[\[\]{}",:0-9a-fu\\eE.\-\n truén]{0,24}"#) {
        let written = dumped(&text);
        let is_json = crate::syntax(text.as_bytes()).is_ok();
        prop_assert!(written.is_ascii() || !is_json);
        let literal = in_literal(&text);
        prop_assert!(!is_json || literal == serde_json::to_string(&written).unwrap());
        dumps_members(&text, |name| name.len() < 3, &mut String::new());
        let mut characters = String::new();
        dumps_characters(&text, &mut characters);
        prop_assert!(!is_json || dumped(&characters) == written, "{}", characters);
    }
}
