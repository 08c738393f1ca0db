//! Tests of profiles: values, bounds and the pointers of faults.

use super::*;
use blackboard_board::Code;

/// A profile with every member, as shown.
const WHOLE: &str = concat!(
    r#"{"format":"anthropic","include":["state","memory:App é","questions"],"keys":["a","b,c"],"latest":5,"#,
    r#""agent":"App é","status":"FAIL","steps":[1,2.0,-1E5],"screenshots":0,"images":"url","max_px":1024,"#,
    r#""cache_marks":false,"max_tokens":8000,"#,
    r#""headings":{"blackboard":"a","questions":"b","requests":"c","trajectories":"[d:]","state":"e","memory":"[{agent}:]"}}"#
);

fn read(text: &str) -> Result<PromptProfiles, Refusal> {
    profiles("/settings/profiles", text)
}

fn shown(text: &str) -> String {
    serde_json::to_string(&PromptProfilesBody::from(&read(text).unwrap())).unwrap()
}

#[track_caller]
fn check_refused(text: &str, code: Code, place: &str) {
    let refusal = read(text).expect_err(text);
    assert_eq!(refusal.code(), code, "{text}");
    let pointer = &refusal.into_facts().faults[0].pointer;
    assert_eq!(pointer.as_ref(), Some(&format!("/settings/profiles{place}")), "{text}");
}

#[test]
fn profiles_are_shown_as_they_were_sent() {
    for sent in ["{}", r#"{"a":{}}"#, r#"{"a":{"headings":{}},"b":{"cache_marks":true}}"#] {
        assert_eq!(shown(sent), sent);
    }
    let whole = format!("{{\"agent\":{WHOLE}}}");
    assert_eq!(shown(&whole), whole);
}

#[test]
fn whole_numbers_have_any_form_and_parts_are_named_once() {
    let sent = r#"{"a":{"latest":5.0,"max_px":1e3,"include":["state","state","requests"]}}"#;
    assert_eq!(shown(sent), r#"{"a":{"include":["state","requests"],"latest":5,"max_px":1000}}"#);
    // The last of repeated names wins, whatever their escapes.
    let sent = r#"{"a":{"latest":1},"\u0061":{"latest":2,"latest":3}}"#;
    assert_eq!(shown(sent), r#"{"a":{"latest":3}}"#);
}

#[test]
fn what_a_profile_cannot_say_is_refused_with_its_place() {
    for (member, wrong) in [
        ("format", vec!["\"openai\"", "1", "\"Parts\"", "null"]),
        ("include", vec!["[]", "\"state\"", "{}", "null"]),
        ("keys", vec!["[]", "\"a\"", "{}", "null"]),
        ("latest", vec!["0", "-1", "1.5", "1000001", "\"5\"", "null", "1e400"]),
        ("agent", vec!["\"\"", "\"a/b\"", "1", "null", "\"..\""]),
        ("status", vec!["1", "null", "\"\\ud800\""]),
        ("steps", vec!["[]", "1", "\"1\"", "null"]),
        ("screenshots", vec!["-1", "1000001", "true", "null"]),
        ("images", vec!["\"data\"", "false", "null"]),
        ("max_px", vec!["0", "16385", "null"]),
        ("cache_marks", vec!["1", "\"true\"", "null"]),
        ("max_tokens", vec!["0", "100000001", "null"]),
        ("headings", vec!["[]", "\"a\"", "null"]),
    ] {
        for value in wrong {
            let text = format!("{{\"x\":{{}},\"p\":{{\"{member}\":{value}}}}}");
            check_refused(&text, Code::InvalidField, &format!("/p/{member}"));
        }
    }
    for (text, place) in [
        (r#"{"p":{"include":["state","nothing"]}}"#, "/p/include/1"),
        (r#"{"p":{"include":["memory:a/b"]}}"#, "/p/include/0"),
        (r#"{"p":{"keys":["a",1]}}"#, "/p/keys/1"),
        (r#"{"p":{"steps":[1,"2"]}}"#, "/p/steps/1"),
        (r#"{"p":{"steps":[1e999]}}"#, "/p/steps/0"),
        (r#"{"p":{"headings":{"state":""}}}"#, "/p/headings/state"),
        (r#"{"p":{"headings":{"state":null}}}"#, "/p/headings/state"),
        (r#"{"p":{"headings":{"state":"a\nb"}}}"#, "/p/headings/state"),
        (r#"{"p":{"headings":{"state":"\u0085"}}}"#, "/p/headings/state"),
        (r#"{"p":null}"#, "/p"),
        (r#"{"p":[]}"#, "/p"),
        (r#"{"":{}}"#, "/"),
        (r#"{"a/b":{}}"#, "/a~1b"),
        ("[]", ""),
        ("5", ""),
    ] {
        check_refused(text, Code::InvalidField, place);
    }
    check_refused(r#"{"p":{"models":"gpt"}}"#, Code::UnknownField, "/p/models");
    check_refused(
        r#"{"p":{"headings":{"screenshots":"a"}}}"#,
        Code::UnknownField,
        "/p/headings/screenshots",
    );
}

#[test]
fn profiles_have_bounds() {
    let listed = |name: &str, count: usize, item: &dyn Fn(usize) -> String| {
        let items: Vec<_> = (0..count).map(item).collect();
        format!("{{\"p\":{{\"{name}\":[{}]}}}}", items.join(","))
    };
    let key = |_: usize| "\"k\"".to_owned();
    let memory = |n: usize| format!("\"memory:a{n}\"");
    let step = |n: usize| n.to_string();
    assert!(read(&listed("keys", 1000, &key)).is_ok());
    check_refused(&listed("keys", 1001, &key), Code::InvalidField, "/p/keys/1000");
    assert!(read(&listed("include", 100, &memory)).is_ok());
    check_refused(&listed("include", 101, &memory), Code::InvalidField, "/p/include");
    check_refused(&listed("include", 106, &memory), Code::InvalidField, "/p/include/105");
    assert!(read(&listed("steps", 1000, &step)).is_ok());
    check_refused(&listed("steps", 1001, &step), Code::InvalidField, "/p/steps");

    let long =
        |count: usize| format!(r#"{{"p":{{"headings":{{"state":"{}"}}}}}}"#, "x".repeat(count));
    assert!(read(&long(256)).is_ok());
    check_refused(&long(257), Code::InvalidField, "/p/headings/state");
    let named = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"p{n}\":{{}}")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(read(&named(64)).unwrap().len(), 64);
    check_refused(&named(65), Code::InvalidField, "");
    // Each profile is within its limits, but their total is not.
    let keys = vec![format!("\"{}\"", "k".repeat(256)); 600].join(",");
    let one = format!("{{\"keys\":[{keys}]}}");
    assert!(read(&format!("{{\"a\":{one}}}")).is_ok());
    let refusal = read(&format!("{{\"a\":{one},\"b\":{one}}}")).unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidField);
}
