//! Places as people write them, and what is none.

use super::*;

fn address(text: &str) -> String {
    text.parse::<Place>().unwrap().address()
}

#[test]
fn a_place_is_a_session_a_log_or_an_entry() {
    assert_eq!(address("demo"), "/v1/sessions/demo");
    assert_eq!(address("demo/"), "/v1/sessions/demo");
    assert_eq!(address("a b%/requests"), "/v1/sessions/a%20b%25/requests");
    assert_eq!(address("demo/questions/3"), "/v1/sessions/demo/questions/3");
    assert_eq!(address("é/agents/A b/memory"), "/v1/sessions/%C3%A9/agents/A%20b/memory");
    assert_eq!(address("demo/agents/3/memory/17"), "/v1/sessions/demo/agents/3/memory/17");
}

#[test]
fn what_is_no_place_says_why() {
    let refused = |text: &str| text.parse::<Place>().unwrap_err().to_string();
    for text in ["demo/logs", "demo/requests/3/4", "demo/agents/A", "demo/3", "demo//"] {
        assert!(refused(text).contains("is no log"), "{text}: {}", refused(text));
    }
    for text in ["demo/requests/x", "demo/requests/0", "demo/requests/+3", "demo/requests/"] {
        assert!(refused(text).contains("is no seq"), "{text}: {}", refused(text));
    }
    for text in ["", "/requests", "..", "a\u{7}"] {
        assert!(refused(text).contains("the session's name is invalid"), "{text}");
    }
    assert_eq!("demo".parse::<LogPlace>(), Err(InvalidPlace::NoLog));
    assert!(matches!("demo/requests/3".parse::<LogPlace>(), Err(InvalidPlace::Log(_))));
}

#[test]
fn an_entry_of_a_known_log_has_a_short_form() {
    for text in ["demo/questions/3", "demo/3"] {
        let place = EntryPlace::question(text).unwrap();
        assert_eq!((place.session.as_str(), place.seq), ("demo", Seq(3)));
    }
    assert!(matches!(EntryPlace::request("demo/questions/3"), Err(InvalidPlace::Seq(_))));
    for text in ["demo", "demo/", "demo/requests", "demo/requests/"] {
        assert!(matches!(EntryPlace::request(text), Err(InvalidPlace::NoEntry(_))), "{text}");
    }
}

#[test]
fn a_value_has_a_path_with_escapes() {
    let place = |text: &str| text.parse::<ValuePlace>();
    assert!(place("demo").unwrap().path.is_root() && place("demo/").unwrap().path.is_root());
    assert_eq!(place("demo/a/b~1c").unwrap().path.to_string(), "a/b~1c");
    for text in ["demo//a", "demo/a/", "demo/a~2", "demo/a/.."] {
        assert!(matches!(place(text), Err(InvalidPlace::State(_))), "{text}");
    }
}

#[test]
fn json_is_kept_as_it_is_written() {
    assert_eq!(json("VALUE", " {\"b\": 1.0}".to_owned()).unwrap(), " {\"b\": 1.0}");
    let refused = json("VALUE", "ready".to_owned()).unwrap_err().to_string();
    assert!(refused.contains("VALUE is not JSON"), "{refused}");
    assert_eq!(quoted("a\"\n"), r#""a\"\n""#);
}
