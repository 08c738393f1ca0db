//! Tests of what is read of messages.

use super::*;

fn key(text: &str) -> String {
    let Ok(Message::Request { id, .. }) = Message::read(text.as_bytes()) else {
        panic!("not a request: {text}")
    };
    id.key()
}

#[test]
fn a_message_is_a_request_a_notification_or_an_answer() {
    let read = |text: &str| Message::read(text.as_bytes()).unwrap();
    let request = read(r#" {"jsonrpc":"2.0","id":1,"method":"a/b","params":{"name":"n","uri":5}}"#);
    let Message::Request { method, params, .. } = request else { panic!("{request:?}") };
    assert_eq!((method.as_str(), params.name.as_deref(), params.uri), ("a/b", Some("n"), None));
    assert!(matches!(read(r#"{"method":"a","params":[1]}"#), Message::Notification { .. }));
    for text in [r#"{"id":1,"result":null}"#, r#"{"id":null,"error":{}}"#, r#"{"error":{}}"#] {
        assert!(matches!(read(text), Message::Answer { .. }), "{text}");
    }
}

#[test]
fn versions_and_ids_are_found_where_they_are() {
    let text = r#"{"method":"notifications/cancelled","params":{"requestId":"a","protocolVersion":"v",
        "_meta":{"io.modelcontextprotocol/protocolVersion":"w"}}}"#;
    let Ok(Message::Notification { params, .. }) = Message::read(text.as_bytes()) else {
        panic!("a notification")
    };
    assert_eq!(params.request_id.unwrap().key(), key(r#"{"id":"\u0061","method":"m"}"#));
    assert_eq!((params.version.as_deref(), params.meta_version.as_deref()), (Some("v"), Some("w")));
    let answer = r#"{"id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
    assert_eq!(Params::of_result(answer).version.as_deref(), Some("2025-11-25"));
    assert_eq!(Params::of_result(r#"{"id":1,"error":{}}"#).version, None);
}

#[test]
fn a_string_and_a_number_are_different_ids() {
    assert_ne!(key(r#"{"id":"1","method":"m"}"#), key(r#"{"id":1,"method":"m"}"#));
    let big = "123456789012345678901234567890";
    assert_eq!(key(&format!(r#"{{"id":{big},"method":"m"}}"#)), big);
}

#[test]
fn what_is_no_message_says_why() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let refused = |text: &[u8]| Message::read(text).unwrap_err();
    for text in ["", "{", "nonsense", "{}x", r#"{"method":}"#, "\u{feff}{}"] {
        assert_eq!(refused(text.as_bytes()), Malformed::Json, "{text}");
    }
    assert_eq!(refused(b"{\"method\":\"\xff\"}"), Malformed::Json);
    for text in [
        "{}",
        "[]",
        "5",
        &deep,
        r#"[{"id":1,"method":"m"}]"#,
        r#"{"id":null,"method":"m"}"#,
        r#"{"id":{},"method":"m"}"#,
        r#"{"id":true,"result":1}"#,
        r#"{"id":1,"method":5}"#,
        r#"{"id":1,"id":2,"method":"m"}"#,
        r#"{"id":null,"result":1}"#,
    ] {
        assert_eq!(refused(text.as_bytes()), Malformed::Message, "{}", text.len());
    }
    let deep = format!(r#"{{"id":1,"method":"m","params":{deep}}}"#);
    assert_eq!(key(&deep), "1");
}

#[test]
fn an_error_has_the_id_as_it_was_sent() {
    let Ok(Message::Request { id, .. }) = Message::read(br#"{"id":1.0,"method":"m"}"#) else {
        panic!("a request")
    };
    let error = RpcError { code: -1, message: "no\n", data: None::<()> };
    let text = error_text(Some(&id), &error);
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-1,"message":"no\n"}}"#);
    assert!(error_text(None, &error).starts_with(r#"{"jsonrpc":"2.0","id":null,"#));
}
