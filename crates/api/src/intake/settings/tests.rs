//! Tests of settings: values, bounds and the pointers of faults.

use super::*;
use blackboard_board::{Code, PromptProfiles};

fn read(settings: &str) -> SettingsPatch {
    settings_patch(settings).unwrap()
}

#[track_caller]
fn check_refused(settings: &str, code: Code, place: &str) {
    let refusal = settings_patch(settings).expect_err(settings);
    assert_eq!(refusal.code(), code, "{settings}");
    let pointer = &refusal.into_facts().faults[0].pointer;
    assert_eq!(pointer.as_ref(), Some(&format!("/settings{place}")), "{settings}");
}

fn max(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn states(text: &str) -> AgentStates {
    let patch = read(&format!("{{\"agent_states\":{text}}}"));
    let Set::To(states) = patch.agent_states else { panic!("{patch:?}") };
    states
}

#[test]
fn an_absent_setting_stays_and_null_resets_it() {
    assert_eq!(read("{}"), SettingsPatch::default());
    for name in [
        "history_keys",
        "screenshot_to_memory",
        "max_items",
        "ttl",
        "history",
        "agent_states",
        "profiles",
        "cost_max",
        "running_max",
    ] {
        let settings = Settings {
            history_keys: Some(Vec::new()),
            screenshot_to_memory: Some(false),
            max_items: Some(MaxItems::All(max(1))),
            ttl: "30d".parse().ok(),
            history: Some(History::Revisions(1)),
            agent_states: Some(AgentStates::new()),
            profiles: Some(PromptProfiles::new()),
            cost_max: Budget::of(1.0),
            running_max: Some(Vec::new()),
        };
        let left = read(&format!("{{\"{name}\":null}}")).apply(&settings);
        let shown = serde_json::to_value(SettingsBody::from(&left)).unwrap();
        assert_eq!((shown.as_object().unwrap().len(), shown.get(name)), (8, None), "{name}");
    }
}

#[test]
fn settings_are_shown_as_they_were_sent() {
    for sent in [
        r#"{}"#,
        r#"{"max_items":3}"#,
        r#"{"cost_max":12.5}"#,
        r#"{"max_items":{"questions":1,"requests":2,"trajectories":3,"screenshots":4,"memory":5}}"#,
        r#"{"max_items":{}}"#,
        r#"{"running_max":[{"max":8},{"by":"device","max":1}]}"#,
        r#"{"history_keys":["a"],"screenshot_to_memory":true,"ttl":"0090m"}"#,
        r#"{"history":500}"#,
        r#"{"history":"30d"}"#,
        r#"{"history":"64MiB"}"#,
        r#"{"history":"1000B"}"#,
        r#"{"agent_states":{"A":{"from":["CONTINUE","B"],"to":[]},"B":{"from":[],"to":["A","B"]}}}"#,
    ] {
        let settings = read(sent).apply(&Settings::default());
        let shown = serde_json::to_string(&SettingsBody::from(&settings)).unwrap();
        assert_eq!(shown, sent.replace("0090m", "90m"));
    }
}

#[test]
fn a_history_is_all_or_an_age_or_a_number_or_a_size() {
    for (sent, kept) in [
        ("null", Set::Reset),
        (r#""all""#, Set::Reset),
        (r#""\u0061ll""#, Set::Reset),
        ("1", Set::To(History::Revisions(1))),
        (r#""90m""#, Set::To(History::Age("90m".parse().unwrap()))),
        (r#""4kib""#, Set::To(History::Bytes(4096))),
        (r#""1B""#, Set::To(History::Bytes(1))),
    ] {
        let patch = read(&format!("{{\"history\":{sent}}}"));
        assert_eq!(patch.history, kept, "{sent}");
    }
    for wrong in [
        "0",
        "-1",
        "1.5",
        "1e400",
        r#""""#,
        r#""ALL""#,
        r#""5""#,
        r#""0B""#,
        r#""0s""#,
        r#""1GB""#,
        "true",
        "[]",
        "{}",
        r#""99999999TiB""#,
        r#""36501d""#,
    ] {
        check_refused(&format!("{{\"history\":{wrong}}}"), Code::InvalidField, "/history");
    }
}

#[test]
fn caps_are_at_most_eight_of_at_least_one_claim() {
    let cap = r#"{"max":1}"#;
    assert!(
        matches!(read(&format!("{{\"running_max\":[{}]}}", [cap; 8].join(","))).running_max, Set::To(caps) if caps.len() == 8)
    );
    for (wrong, code, place) in [
        (r#"{"max":1}"#.to_owned(), Code::InvalidField, ""),
        (format!("[{}]", [cap; 9].join(",")), Code::InvalidField, "/8"),
        (r#"[{"max":0}]"#.to_owned(), Code::InvalidField, "/0/max"),
        (r#"[{"max":1000001}]"#.to_owned(), Code::InvalidField, "/0/max"),
        (r#"[{"max":1.5}]"#.to_owned(), Code::InvalidField, "/0/max"),
        (r#"[{"by":"device"}]"#.to_owned(), Code::InvalidField, "/0"),
        (r#"[{"by":1,"max":1}]"#.to_owned(), Code::InvalidField, "/0/by"),
        (r#"[{"by":"device","max":1,"min":1}]"#.to_owned(), Code::UnknownField, "/0/min"),
    ] {
        check_refused(
            &format!("{{\"running_max\":{wrong}}}"),
            code,
            &format!("/running_max{place}"),
        );
    }
}

#[test]
fn a_log_without_a_bound_keeps_all() {
    let patch = read(r#"{"max_items":{"requests":2,"questions":1,"questions":null}}"#);
    let each = MaxItemsEach { requests: Some(max(2)), ..MaxItemsEach::default() };
    assert_eq!(patch.max_items, Set::To(MaxItems::Each(each)));
}

#[test]
fn a_bound_is_a_whole_number_of_at_least_one() {
    // Numbers of JSON: 2.0 is as whole as 2.
    for right in ["2", "2.0", "2e0"] {
        let patch = read(&format!("{{\"max_items\":{right}}}"));
        assert_eq!(patch.max_items, Set::To(MaxItems::All(max(2))));
    }
    for wrong in ["0", "0.0", "-1", "-0", "1.5", "99999999999999999999", "\"3\"", "true", "[]"] {
        let all = format!("{{\"max_items\":{wrong}}}");
        check_refused(&all, Code::InvalidField, "/max_items");
        let one = format!("{{\"max_items\":{{\"requests\":1,\"memory\":{wrong}}}}}");
        check_refused(&one, Code::InvalidField, "/max_items/memory");
    }
    let unknown = r#"{"max_items":{"state":1}}"#;
    check_refused(unknown, Code::UnknownField, "/max_items/state");
    check_refused(r#"{"max_items":{"memory":{}}}"#, Code::InvalidField, "/max_items/memory");
}

#[test]
fn a_time_to_live_is_a_duration_as_text() {
    for wrong in ["5", "\"5\"", "\"0s\"", "[\"30d\"]", "{}", "false"] {
        check_refused(&format!("{{\"ttl\":{wrong}}}"), Code::InvalidField, "/ttl");
    }
}

#[test]
fn a_status_may_lead_to_a_later_one() {
    let read = states(r#"{"A":{"to":["B","A","B","CONTINUE","B"]},"B":{}}"#);
    assert_eq!(read["A"].to, ["B", "A", "CONTINUE"]);
    assert_eq!((&read["A"].from, &read["B"]), (&Vec::new(), &Moves::default()));
    // The last of a name, however it is written.
    let read = states(r#"{"A":{"to":["CONTINUE"]},"\u0041":{"from":["FAIL"],"from":["ERROR"]}}"#);
    let last = Moves { from: vec!["ERROR".to_owned()], to: Vec::new() };
    assert_eq!(read, AgentStates::from([("A".to_owned(), last)]));
}

#[test]
fn a_status_that_cannot_be_is_refused_with_its_place() {
    let long = "x".repeat(257);
    for (states, place) in [
        (r#"{"":{}}"#, "/"),
        (r#"{"a\nb":{}}"#, "/a\nb"),
        (r#"{"\u0085":{}}"#, "/\u{85}"),
        (r#"{"\ud800":{}}"#, "/\u{fffd}"),
        (&format!("{{\"{long}\":{{}}}}"), &format!("/{long}")),
        (r#"{"A":{},"CONTINUE":{}}"#, "/CONTINUE"),
        (r#"{"a/b":{"from":["c"]}}"#, "/a~1b/from/0"),
        (r#"{"A":{"to":["A","NEVER"]}}"#, "/A/to/1"),
        (r#"{"A":{"to":["continue"]}}"#, "/A/to/0"),
        (r#"{"A":{"to":[1]}}"#, "/A/to/0"),
        (r#"{"A":{"to":["\udc00"]}}"#, "/A/to/0"),
        (r#"{"A":{"to":null}}"#, "/A/to"),
        (r#"{"A":{"from":"CONTINUE"}}"#, "/A/from"),
        (r#"{"A":null}"#, "/A"),
        (r#"{"A":["CONTINUE"]}"#, "/A"),
        ("[]", ""),
        ("\"A\"", ""),
        ("5", ""),
    ] {
        let place = format!("/agent_states{place}");
        check_refused(&format!("{{\"agent_states\":{states}}}"), Code::InvalidField, &place);
    }
    let unknown = r#"{"agent_states":{"A":{"too":[]}}}"#;
    check_refused(unknown, Code::UnknownField, "/agent_states/A/too");
    check_refused(r#"{"agent_state":{}}"#, Code::UnknownField, "/agent_state");
}

#[test]
fn a_session_adds_at_most_64_statuses_of_at_most_71_moves() {
    let named = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"S{n}\":{{}}")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(states(&named(64)).len(), 64);
    let over = format!("{{\"agent_states\":{}}}", named(65));
    check_refused(&over, Code::InvalidField, "/agent_states");
    let listed = |count| format!("{{\"A\":{{\"to\":[{}]}}}}", vec!["\"A\""; count].join(","));
    assert_eq!(states(&listed(71))["A"].to, ["A"]);
    let over = format!("{{\"agent_states\":{}}}", listed(72));
    check_refused(&over, Code::InvalidField, "/agent_states/A/to/71");
}
