//! Tests of what is read of an agent's attention.

use super::*;

fn things(lists: &str) -> Vec<Thing> {
    let text = format!(r#"{{{lists},"paused":false,"next":9}}"#);
    serde_json::from_str::<Waiting<'_>>(&text).unwrap().things()
}

fn list(name: &str, members: &str) -> String {
    format!(r#""{name}":{{"count":1,"newest":[{{"seq":3,"revision":8,"at":"T1",{members}}}]}}"#)
}

#[test]
fn each_kind_of_thing_has_a_sentence() {
    let of = |name: &str, members: &str| {
        let thing = things(&list(name, members)).remove(0);
        (thing.key, thing.from.unwrap_or_default(), thing.sentence)
    };
    let expected = |key: &str, from: &str, sentence: &str| {
        (key.to_owned(), from.to_owned(), sentence.to_owned())
    };
    assert_eq!(
        of("messages", r#""agent":"A","item":{"text":"b\nc"}"#),
        expected("messages 3 T1", "A", r#"message 3 from A: {"text":"b\nc"}"#)
    );
    assert_eq!(
        of("claimable", r#""agent":"A","item":{}"#),
        expected("claimable 3 8", "A", "request 3 from A can be claimed: {}")
    );
    let cancel = r#""agent":"A","item":{},"cancel":{"agent":"P","at":"T2","reason":"late"}"#;
    let sentence = r#"request 3, which you hold, is cancelled by P, reason "late": {}"#;
    assert_eq!(of("cancels", cancel), expected("cancels 3 T2", "P", sentence));
    let review = r#""agent":"A","item":{},"in_review":{"agent":"W","at":"T2","result":[1]}"#;
    let sentence = "request 3 waits for a review of the work of W, result [1]: {}";
    assert_eq!(of("reviews", review), expected("reviews 3 T2", "W", sentence));
    let answer = r#""agent":"A","item":{"question":"Which?","answer":"This"}"#;
    let sentence =
        r#"question 3, which you asked, has an answer: {"question":"Which?","answer":"This"}"#;
    assert_eq!(of("answers", answer), expected("answers 3 T1", "", sentence));
}

#[test]
fn a_message_keeps_its_text_thread_and_reply() {
    let item = r#""item":{"text":"b\nc","thread":"t","reply_to":2}"#;
    let thing = things(&list("messages", item)).remove(0);
    assert_eq!(thing.text.as_deref(), Some("b\nc"));
    assert_eq!((thing.thread.as_deref(), thing.reply_to), (Some("t"), Some(2)));
    let other = things(&list("messages", r#""item":{"text":["b"],"n":1.0}"#)).remove(0);
    assert_eq!(
        (other.text, other.sentence.as_str()),
        (None, r#"message 3: {"text":["b"],"n":1.0}"#)
    );
}

#[test]
fn what_matters_most_comes_first() {
    let lists = [list("claimable", r#""item":{}"#), list("messages", r#""item":{}"#)].join(",");
    let lists = [lists, list("cancels", r#""item":{},"cancel":{"at":"T2"}"#)].join(",");
    let kinds: Vec<Kind> = things(&lists).iter().map(|thing| thing.kind).collect();
    assert_eq!(kinds, [Kind::Cancels, Kind::Messages, Kind::Claimable]);
}

#[test]
fn a_line_holds_no_more_than_a_part_of_a_large_item() {
    let item = format!(r#""item":{{"text":"{}"}}"#, "x".repeat(100_000));
    let thing = things(&list("messages", &item)).remove(0);
    assert!(thing.sentence.len() < ITEM_BYTES_MAX + 100, "{}", thing.sentence.len());
}
