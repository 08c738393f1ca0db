//! Parts of what waits, and the keys of things.

use super::*;

fn message(seq: u64, text: &str) -> String {
    format!(r#"{{"seq":{seq},"revision":{seq},"at":"T{seq}","item":{{"text":"{text}"}}}}"#)
}

fn list(count: usize, entries: &[String]) -> String {
    format!(r#"{{"count":{count},"newest":[{}]}}"#, entries.join(","))
}

fn waiting(lists: &str) -> String {
    format!(r#"{{{lists},"paused":false,"next":9}}"#)
}

/// The keys of each message in turn, once those before it are delivered.
fn parcels(text: &str, delivered: &mut BTreeSet<String>) -> Vec<Vec<String>> {
    let waiting: Waiting<'_> = serde_json::from_str(text).unwrap();
    let mut parcels = Vec::new();
    while let Some(parcel) = waiting.parcel("A", None, delivered).unwrap() {
        delivered.extend(parcel.contents.keys.iter().cloned());
        parcels.push(parcel.contents.keys);
    }
    parcels
}

#[test]
fn a_parcel_is_what_was_not_delivered() {
    let messages = list(3, &[message(2, "b"), message(3, "c")]);
    let text = waiting(&format!(r#""messages":{messages},"reviews":{}"#, list(0, &[])));
    let waiting: Waiting<'_> = serde_json::from_str(&text).unwrap();
    let delivered = BTreeSet::from(["messages 2 T2".to_owned()]);
    let parcel = waiting.parcel("A", None, &delivered).unwrap().unwrap();
    assert_eq!((parcel.contents.at.as_str(), parcel.contents.is_whole), ("T3", true));
    assert_eq!(parcel.contents.messages, [(3, "messages 3 T3".to_owned())]);
    let expected = format!(
        r#"{{"agent":"A","messages":{},"reviews":{},"paused":false,"next":9}}"#,
        list(3, &[message(3, "c")]),
        list(0, &[])
    );
    assert_eq!(serde_json::to_string(&parcel).unwrap(), expected);
}

#[test]
fn a_parcel_holds_few_entries_and_bytes() {
    let entries: Vec<_> = (1..=45).map(|seq| message(seq, "")).collect();
    let text = waiting(&format!(r#""messages":{}"#, list(45, &entries)));
    let sizes = |text: &str| {
        let parcels = parcels(text, &mut BTreeSet::new());
        parcels.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&text), [20, 20, 5]);
    let large = "x".repeat(ENTRIES_BYTES_MAX);
    let entries = [message(1, "a"), message(2, &large), message(3, "c"), message(4, "d")];
    let text = waiting(&format!(r#""messages":{0},"cancels":{0}"#, list(4, &entries)));
    assert_eq!(sizes(&text), [2, 1, 2, 1, 2]);
}

#[test]
fn messages_before_those_listed_are_noticed() {
    let text = waiting(&format!(r#""messages":{}"#, list(2, &[message(2, "")])));
    let cut: Waiting<'_> = serde_json::from_str(&text).unwrap();
    let mut delivered = BTreeSet::new();
    assert!(cut.hides_messages(&delivered).unwrap());
    delivered.extend(["messages 1 T1".to_owned(), "messages 2 T2".to_owned()]);
    assert!(!cut.hides_messages(&delivered).unwrap());
    cut.retain(&mut delivered).unwrap();
    assert_eq!(delivered.len(), 2);
    let text = waiting(&format!(r#""messages":{}"#, list(1, &[message(2, "")])));
    let whole: Waiting<'_> = serde_json::from_str(&text).unwrap();
    assert!(!whole.hides_messages(&BTreeSet::new()).unwrap());
    whole.retain(&mut delivered).unwrap();
    assert_eq!(delivered, BTreeSet::from(["messages 2 T2".to_owned()]));
}

#[test]
fn a_thing_that_waits_again_has_another_key() {
    let entry = |members: &str| {
        let text = format!(r#"{{"seq":1,"revision":5,"at":"T1",{members}"item":{{}}}}"#);
        RawValue::from_string(text).unwrap()
    };
    assert_eq!(key(Kind::Claimable, &entry("")).unwrap(), "claimable 1 5");
    let cancel = entry(r#""cancel":{"at":"T2","reason":"late"},"#);
    assert_eq!(key(Kind::Cancels, &cancel).unwrap(), "cancels 1 T2");
    let review = entry(r#""in_review":{"at":"T3"},"#);
    assert_eq!(key(Kind::Reviews, &review).unwrap(), "reviews 1 T3");
    assert_eq!(key(Kind::Messages, &entry("")).unwrap(), "messages 1 T1");
}
