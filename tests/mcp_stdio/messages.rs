//! Messages in both directions: their exact text, order and headers, and the end of the bridge.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Mutex};

use rustix::process::Signal;

use crate::DEADLINE;
use crate::bridge::{Bridge, command};
use crate::server::{Peer, Request, serve};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":"p","result":"p"}"#;

/// A script that also tells each request.
fn telling(
    script: impl Fn(&Request, &mut Peer) + Send + Sync + 'static,
) -> (impl Fn(&Request, &mut Peer) + Send + Sync + 'static, Receiver<Request>) {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let telling = move |request: &Request, peer: &mut Peer| {
        tell.lock().unwrap().send(request.clone()).ok();
        script(request, peer);
    };
    (telling, told)
}

fn next(told: &Receiver<Request>) -> Request {
    told.recv_timeout(DEADLINE).expect("a request")
}

/// Something that a script waits for.
fn gate() -> (Sender<()>, Mutex<Receiver<()>>) {
    let (open, opened) = channel();
    (open, Mutex::new(opened))
}

#[test]
fn texts_are_kept_to_the_byte() {
    let sent = r#"{"jsonrpc" : "2.0","id":123456789012345678901234567890,"method":"tools/call","params":{"z":1.0,"a":[1e400, -0],"s":"\u00e9é\/","z2":{}}}"#;
    let answer = r#"{"result":{"z":1.0,"a":123456789012345678901234567890,"s":"\u00e9é\/"},"id":123456789012345678901234567890 ,"jsonrpc":"2.0"}"#;
    let (script, told) = telling(move |_, peer| peer.json(answer));
    let mut bridge = Bridge::to(&serve(script));
    assert_eq!(bridge.ask(sent), answer);
    assert_eq!(next(&told).body, sent);
    bridge.end();
}

#[test]
fn an_answer_on_several_lines_becomes_one() {
    let pretty = "{\r\n  \"id\": \"p\",\n  \"result\": \"a\\nb\"\n}\n";
    let mut bridge = Bridge::to(&serve(move |_, peer| peer.json(pretty)));
    assert_eq!(bridge.ask(PING).trim_end(), r#"{    "id": "p",   "result": "a\nb" }"#);
    bridge.end();
}

#[test]
fn requests_are_open_side_by_side() {
    let all_there = Barrier::new(16);
    let (third, first_waits) = gate();
    let third = Mutex::new(third);
    let mut bridge = Bridge::to(&serve(move |request, peer| {
        all_there.wait();
        match request.json()["id"].as_u64() {
            Some(1) => first_waits.lock().unwrap().recv_timeout(DEADLINE).unwrap(),
            Some(3) => third.lock().unwrap().send(()).unwrap(),
            _ => {}
        }
        peer.echo(request);
    }));
    for id in 1..=16 {
        bridge.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
    }
    let mut answers: Vec<_> = (1..=16).map(|_| bridge.line()).collect();
    answers.sort();
    let mut expected: Vec<_> =
        (1..=16).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#)).collect();
    expected.sort();
    assert_eq!(answers, expected);
    bridge.end();
}

#[test]
fn each_event_of_a_stream_is_a_line() {
    let text = ": hello\r\n\r\nid: 1\nretry: 5\ndata:\n\nevent: message\ndata: {\"method\":\"notifications/progress\",\n\
                data: \"params\":{\"progress\":1.0}}\n\ndata: {\"id\":7,\"method\":\"elicitation/create\"}\r\n\r\n\
                : keep-alive\n\ndata:{\"id\":\"p\",\"result\":\"é\"}\r\rdata: {\"method\":\"late\"}\n\n";
    for size in [1, 7, 1_000] {
        let mut bridge = Bridge::to(&serve(move |_, peer| {
            peer.put(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            let chars: Vec<char> = text.chars().collect();
            for chunk in chars.chunks(size) {
                let chunk: String = chunk.iter().collect();
                peer.put(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
            }
            peer.put("0\r\n\r\n");
        }));
        bridge.send(PING);
        let progress = r#"{"method":"notifications/progress", "params":{"progress":1.0}}"#;
        assert_eq!(bridge.line(), progress);
        assert_eq!(bridge.line(), r#"{"id":7,"method":"elicitation/create"}"#);
        assert_eq!(bridge.line(), r#"{"id":"p","result":"é"}"#);
        bridge.end();
    }
}

#[test]
fn a_cancelled_request_loses_its_connection() {
    let (end, ended) = channel();
    let end = Mutex::new(end);
    let mut bridge = Bridge::to(&serve(move |request, peer| match request.method().as_str() {
        "subscriptions/listen" => {
            peer.begin_events();
            peer.put("data: {\"method\":\"notifications/message\"}\n\n");
            peer.wait_for_end();
            end.lock().unwrap().send(()).unwrap();
        }
        "wait" => {
            peer.wait_for_end();
            end.lock().unwrap().send(()).unwrap();
        }
        _ => peer.echo(request),
    }));
    let listen = r#"{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen"}"#;
    assert_eq!(bridge.ask(listen), r#"{"method":"notifications/message"}"#);
    bridge
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#);
    ended.recv_timeout(DEADLINE).expect("the stream's end");
    bridge.send(r#"{"jsonrpc":"2.0","id":5,"method":"wait"}"#);
    assert_eq!(bridge.ask(PING), PONG);
    bridge.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    ended.recv_timeout(DEADLINE).expect("the call's end");
    bridge
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"?"}}"#);
    // An id is free again after that.
    assert_eq!(bridge.ask(PING), PONG);
    bridge.end();
}

#[test]
fn initialize_is_answered_before_the_next_line() {
    let (script, told) = telling(|request, peer| match request.method().as_str() {
        "initialize" => {
            peer.json(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
        }
        "ping" => peer.echo(request),
        _ => peer.put("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
    });
    let mut bridge = Bridge::to(&serve(script));
    bridge.send_bytes(
        concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            "\n",
        )
        .as_bytes(),
    );
    assert!(bridge.line().contains("protocolVersion"));
    assert_eq!(bridge.line(), PONG);
    let version = "mcp-protocol-version";
    assert_eq!(next(&told).header(version), None);
    for _ in 0..3 {
        let request = next(&told);
        assert_eq!(request.header(version), Some("2025-11-25"), "{}", request.head);
        assert_eq!(request.header("mcp-method"), None);
    }
    bridge.end();
}

#[test]
fn a_notification_comes_before_what_follows_it() {
    let (script, told) = telling(|request, peer| {
        if request.method() == "ping" {
            peer.echo(request);
        } else {
            peer.put("HTTP/1.1 202 \r\nContent-Length: 0\r\n\r\n");
        }
    });
    let mut bridge = Bridge::to(&serve(script));
    for number in 0..20 {
        bridge.send(&format!(r#"{{"jsonrpc":"2.0","method":"n","params":{{"number":{number}}}}}"#));
    }
    assert_eq!(bridge.ask(PING), PONG);
    let numbers: Vec<_> = (0..20).map(|_| next(&told).json()["params"]["number"].clone()).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<u64>>());
    assert_eq!(next(&told).method(), "ping");
    bridge.end();
}

#[test]
fn a_request_says_who_asks_and_in_which_version() {
    let (script, told) = telling(|request, peer| peer.echo(request));
    let mut command = command(&serve(script));
    command.args(["--session", "a b&é", "--agent", "Höst Agent", "--tools", "worker"]);
    let mut bridge = Bridge::start(command);
    bridge.ask(r#"{"id":1,"method":"tools/call","params":{"name":"ask","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#);
    let request = next(&told);
    let path = "POST /mcp?session=a%20b%26%C3%A9&tools=worker HTTP/1.1";
    assert_eq!(request.head.lines().next(), Some(path));
    for (name, value) in [
        ("x-agent-id", "H%C3%B6st%20Agent"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "ask"),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert_eq!(request.header("authorization"), None);
    bridge.end();
}

#[test]
fn a_malformed_line_is_answered_and_the_next_one_read() {
    let mut bridge = Bridge::to(&serve(|request, peer| peer.echo(request)));
    let long = format!("\"{}\"", "a".repeat(32 << 20));
    for (line, code) in [
        ("{\"id\":1,\"method\":".as_bytes(), -32700),
        (b"{\"id\":1,\"method\":\"\xff\"}", -32700),
        (long.as_bytes(), -32700),
        (b"[{\"id\":1,\"method\":\"m\"}]", -32600),
        (b"{\"id\":null,\"method\":\"m\"}", -32600),
    ] {
        bridge.send_bytes(line);
        bridge.send_bytes(b"\r\n\n");
        let answer: serde_json::Value = serde_json::from_str(&bridge.line()).unwrap();
        assert!(answer["id"].is_null());
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    assert_eq!(bridge.ask(PING), PONG);
    bridge.end();
}

#[test]
fn open_requests_are_answered_after_the_end_of_the_input() {
    let (open, opened) = gate();
    let (came, coming) = channel();
    let came = Mutex::new(came);
    let mut bridge = Bridge::to(&serve(move |request, peer| {
        came.lock().unwrap().send(()).unwrap();
        opened.lock().unwrap().recv_timeout(DEADLINE).unwrap();
        peer.echo(request);
    }));
    // The last line needs no end.
    bridge.send_bytes(PING.as_bytes());
    bridge.close_input();
    coming.recv_timeout(DEADLINE).expect("the request");
    open.send(()).unwrap();
    let ended = bridge.wait();
    assert!(ended.status.success());
    assert_eq!(ended.rest, [PONG]);
}

#[test]
fn a_signal_ends_it_whatever_is_open() {
    for signal in [Signal::TERM, Signal::INT] {
        let (came, coming) = channel();
        let came = Mutex::new(came);
        let mut bridge = Bridge::to(&serve(move |_, peer| {
            came.lock().unwrap().send(()).unwrap();
            peer.wait_for_end();
        }));
        bridge.send(PING);
        coming.recv_timeout(DEADLINE).expect("the request");
        bridge.signal(signal);
        let ended = bridge.wait();
        assert!(ended.status.success() && ended.rest.is_empty(), "{:?}", ended.rest);
    }
}
