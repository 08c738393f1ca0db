//! Headers that mirror a message, so that proxies need not read it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::message::{Message, Params};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The first version with the headers `Mcp-Method` and `Mcp-Name`. Versions are dates, which sort as texts.
const MIRRORED_FROM: &str = "2026-07-28";

/// The marks around a value that is in base64, since a header could not carry it as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Returns the headers of a message; `negotiated` is the version that `initialize` agreed on, if it did.
pub(super) fn of(message: &Message, negotiated: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            (Some(method.as_str()), Some(params))
        }
        Message::Answer { .. } => (None, None),
    };
    let negotiated = negotiated.filter(|_| method != Some("initialize"));
    let version = params.and_then(|params| params.meta_version.as_deref()).or(negotiated);
    let Some(version) = version else { return headers };
    if let Ok(version) = HeaderValue::from_str(version) {
        headers.insert(PROTOCOL_VERSION, version);
    }
    let (Some(method), Some(params)) = (method, params) else { return headers };
    if version >= MIRRORED_FROM {
        headers.extend(value(method).map(|value| (METHOD, value)));
        headers.extend(name(method, params).and_then(value).map(|value| (NAME, value)));
    }
    headers
}

/// Returns the name of the thing that a request is about.
fn name<'a>(method: &str, params: &'a Params) -> Option<&'a str> {
    match method {
        "tools/call" | "prompts/get" => params.name.as_deref(),
        "resources/read" => params.uri.as_deref(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task_id.as_deref(),
        _ => None,
    }
}

fn value(text: &str) -> Option<HeaderValue> {
    let (begin, end) = ENCODED;
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with(begin) && text.ends_with(end));
    if is_plain {
        HeaderValue::from_str(text).ok()
    } else {
        HeaderValue::try_from(format!("{begin}{}{end}", STANDARD.encode(text))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str, negotiated: Option<&str>) -> Vec<(String, String)> {
        let headers = of(&Message::read(text.as_bytes()).unwrap(), negotiated);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    /// The headers of a message by its method and parameters, of the newer generation.
    fn newer(method: &str, params: &str) -> Vec<String> {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let text = format!(r#"{{"id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
        headers(&text, None).into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn a_message_of_the_newer_generation_is_mirrored() {
        let version = "mcp-protocol-version: 2026-07-28";
        assert_eq!(newer("tools/list", ""), [version, "mcp-method: tools/list"]);
        for (method, params, expected) in [
            ("tools/call", r#""name":"ask","uri":"u","#, "ask"),
            ("prompts/get", r#""name":" ask","#, "=?base64?IGFzaw==?="),
            ("resources/read", r#""name":"n","uri":"b://é","#, "=?base64?YjovL8Op?="),
            ("tasks/get", r#""taskId":"t","#, "t"),
            ("tools/call", r#""name":"=?base64?x?=","#, "=?base64?PT9iYXNlNjQ/eD89?="),
            ("tools/call", r#""name":"a\r\nb","#, "=?base64?YQ0KYg==?="),
        ] {
            let method_header = format!("mcp-method: {method}");
            let name_header = format!("mcp-name: {expected}");
            assert_eq!(newer(method, params), [version, &method_header, &name_header]);
        }
        assert_eq!(newer("tools/call", r#""name":5,"#).len(), 2);
    }

    #[test]
    fn an_older_message_has_the_negotiated_version() {
        let expected = [("mcp-protocol-version".to_owned(), "2025-11-25".to_owned())];
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"ask"}}"#;
        let answer = r#"{"id":1,"result":{}}"#;
        for text in [call, answer, r#"{"method":"notifications/initialized"}"#] {
            assert_eq!(headers(text, Some("2025-11-25")), expected);
            assert!(headers(text, None).is_empty());
        }
        let again = r#"{"id":1,"method":"initialize","params":{"protocolVersion":"x"}}"#;
        assert!(headers(again, Some("2025-11-25")).is_empty());
        assert!(headers(call, Some("2\n")).is_empty());
    }
}
