//! Tests of single layers: transitions, strategies, commands to absent or dying devices, a model, a tool server.

use std::time::Duration;

use device_agent::board::Board;
use device_agent::command::{Command, Dispatcher, ResultStatus, ToolType};
use device_agent::mcp::ToolServer;
use device_agent::model::{Endpoint, Model, Turn};
use device_agent::state::AgentStatus;
use device_agent::strategy::{
    ACT, DECIDE, MissingDependency, OBSERVE, Processor, READ_BOARD, REMEMBER,
};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{World, binary};

/// The arrows of the diagram in `infrastructure/agents/design/state.md`.
const DIAGRAM: [(&str, &[&str]); 7] = [
    ("CONTINUE", &["CONTINUE", "PENDING", "CONFIRM", "SCREENSHOT", "FINISH", "FAIL", "ERROR"]),
    ("PENDING", &["CONTINUE", "FAIL"]),
    ("CONFIRM", &["CONTINUE", "FAIL"]),
    ("SCREENSHOT", &["CONTINUE"]),
    ("FINISH", &[]),
    ("FAIL", &[]),
    ("ERROR", &[]),
];

/// The diagram in `infrastructure/agents/overview.md` has no such arrow, and the server follows that one.
const TWO_STEPS: [(&str, &str); 1] = [("PENDING", "FAIL")];

#[tokio::test]
async fn transitions_are_those_of_the_documents() {
    let world = World::new().await;
    for (from, arrows) in DIAGRAM {
        let own = AgentStatus::ALL.into_iter().find(|status| status.name() == from).unwrap();
        let names = |list: &[AgentStatus]| list.iter().map(|one| one.name()).collect::<Vec<_>>();
        let (mut next, mut drawn) = (names(own.next()), arrows.to_vec());
        next.sort_unstable();
        drawn.sort_unstable();
        assert_eq!(next, drawn, "{from}");
        for to in arrows {
            let path = format!("agents/{from}-{to}");
            world.put(&path, &json!({"status": from})).await;
            let moved = world.board.write(Method::PATCH, &path, &json!({"status": to})).await;
            let refused = moved.is_err_and(|error| error.code() == "illegal-transition");
            assert_eq!(refused, TWO_STEPS.contains(&(from, to)), "{from} to {to}");
        }
    }
}

#[test]
fn a_strategy_without_what_it_needs_is_refused() {
    let refused = Processor::new(&[OBSERVE, DECIDE, ACT, REMEMBER], &[]).unwrap_err();
    assert_eq!(refused, MissingDependency { strategy: "Decide", field: "board" });
    let sentence = "strategy 'Decide' needs 'board', which no strategy before it provides";
    assert_eq!(refused.to_string(), sentence);
    let refused = Processor::new(&[READ_BOARD, DECIDE, REMEMBER], &[]).unwrap_err();
    assert_eq!(refused, MissingDependency { strategy: "Remember", field: "results" });
    assert!(
        Processor::new(&[REMEMBER, ACT, DECIDE, READ_BOARD], &[]).is_ok(),
        "phases have an order"
    );
}

fn shell(command: &str, tool_type: ToolType) -> Command {
    let parameters = json!({"command": command}).as_object().unwrap().clone();
    let (tool_name, call_id) = ("execute_command".to_owned(), command.replace(' ', "-"));
    Command { tool_name, parameters, tool_type, call_id, ..Command::default() }
}

async fn sent(board: &Board, command: Command, timeout: u64) -> (ResultStatus, String) {
    let way = Dispatcher::ThroughBoard("linux".to_owned());
    let results =
        way.execute(board, &[Command { timeout: Some(timeout), ..command }]).await.unwrap();
    (results[0].status, results[0].error.clone().unwrap_or_default())
}

#[tokio::test]
async fn a_command_waits_and_is_withdrawn_in_the_end() {
    let world = World::new().await;
    let gone = sent(&world.board, shell("echo late", ToolType::Action), 1).await;
    assert_eq!(gone, (ResultStatus::Failure, "device 'linux' did not finish within 1s".into()));
    assert_eq!(world.items("requests").await, [json!(null); 0]);
    let waits = sent(&world.board, shell("echo hello", ToolType::Action), 20);
    let start = async { world.device("linux", "execute_command", "echo") };
    assert_eq!(tokio::join!(waits, start).0, (ResultStatus::Success, String::new()));
}

#[tokio::test]
async fn an_action_of_a_killed_device_is_not_repeated() {
    let world = World::new().await;
    let first = world.device("linux", "execute_command", "sleep");
    let (board, path) = (&world.board, "requests/1");
    let acts = sent(board, shell("sleep 5", ToolType::Action), 20);
    let kill = async {
        world.when(path, |entry| entry.get("claim").is_some()).await;
        first.signal(Signal::KILL);
        world.when(path, |entry| entry.get("failed").is_some()).await;
        world.device("linux", "execute_command", "sleep")
    };
    let ((status, error), second) = tokio::join!(acts, kill);
    assert_eq!(status, ResultStatus::Failure, "{error}");
    // An observation is repeated by the next client of the device.
    let looks = sent(board, shell("sleep 1", ToolType::DataCollection), 20);
    let kill = async {
        world.when("requests/2", |entry| entry.get("claim").is_some()).await;
        second.signal(Signal::KILL);
        world.device("linux", "execute_command", "sleep")
    };
    let ((status, error), _third) = tokio::join!(looks, kill);
    assert_eq!(status, ResultStatus::Success, "{error}");
}

#[tokio::test]
async fn an_endpoint_of_chat_completions_decides() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    let model =
        Endpoint { url: url.parse().unwrap(), model: "small".into(), key: Some("key".into()) };
    let board = json!([{"type": "text", "text": "[Blackboard:]"}]);
    let (instructions, seen) = ("Decide.", json!({}));
    let turn = Turn { request: "r", step: 0, instructions, board: &board, seen };
    let answered = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut asked, mut buffer) = (String::new(), [0; 4096]);
        while !asked.contains("\"request\\\":\\\"r\\\"") {
            let read = stream.read(&mut buffer).await.unwrap();
            asked.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        let decision = json!({"status": "FINISH", "result": 7}).to_string();
        let body = json!({"choices": [{"message": {"content": decision}}]}).to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        asked
    };
    let (decision, asked) = tokio::join!(model.decide(&turn), answered);
    let decision = decision.unwrap();
    assert_eq!((decision.status.as_str(), decision.result), ("FINISH", json!(7)));
    assert!(
        asked.contains("authorization: Bearer key") && asked.contains("[Blackboard:]"),
        "{asked}"
    );
}

/// Another's MCP: the server's own bridge over standard streams.
#[tokio::test]
async fn the_board_itself_is_a_tool_server() {
    let world = World::new().await;
    let (bridge, url, file) = (binary(), &world.url, world.home.path().join("person.token"));
    let file = file.display();
    let command =
        format!("{} mcp --url {url} --session demo --token-file {file}", bridge.display());
    let tools = ToolServer::start(&command).unwrap();
    let answer = |arguments: Value| {
        let tools = tools.clone();
        async move { tools.call("set_state", &arguments, Duration::from_secs(10)).await }
    };
    assert!(tools.schemas.len() > 5, "{:?}", tools.schemas.keys());
    let set = answer(json!({"path": "seen", "value": true})).await;
    assert!(set.is_ok(), "{set:?} {:?}", tools.schemas.keys());
    assert_eq!(world.board.get("state/seen", &[]).await.unwrap().body, json!(true));
}
