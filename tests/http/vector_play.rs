//! Player of vectors: each is played on a board by the contract's table, and differences are reported.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::ask;
use crate::harness::{Board, encoded};
use crate::images::data_url;
use crate::python_value::{elements, loads, members};

#[derive(Deserialize)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
    ops: Vec<Op>,
    results: Vec<Outcome>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Op {
    op: String,
    data_text: Option<String>,
    metadata_text: Option<String>,
    path: Option<String>,
    file_base64: Option<String>,
    file_text: Option<String>,
    last_k: Option<i64>,
    section: Option<String>,
    step_text: Option<String>,
    steps_text: Option<String>,
    keys_text: Option<String>,
    #[serde(default)]
    make_dir: bool,
}

#[derive(Deserialize)]
struct Outcome {
    raises: Option<String>,
    stdout: Option<String>,
    value_text: Option<String>,
    value_string: Option<String>,
}

#[derive(Deserialize)]
struct Expect {
    prompt_text: String,
    json: String,
    questions_json: String,
    requests_json: String,
    trajectories_json: String,
    screenshots_json: String,
    is_empty: bool,
    lengths: BTreeMap<String, u64>,
    memory_json: Option<String>,
    memory_list_text: Option<String>,
    memory_length: Option<u64>,
}

/// What playing a vector showed.
#[derive(Default)]
pub(crate) struct Played {
    pub(crate) mismatches: Vec<String>,
    /// An op failed or did nothing in the client, before there was anything to send.
    pub(crate) client_side: bool,
}

/// What an op is over HTTP.
enum Step {
    Nothing,
    Write(Box<RequestBuilder>),
    /// A log's items, of a list or of none or one.
    Items(String),
    Latest(String),
    Count(String),
    IsEmpty(String),
}

fn write_by(request: RequestBuilder) -> Step {
    Step::Write(Box::new(request))
}

/// The log that a section of the original is.
pub(crate) fn log(section: &str) -> &str {
    if section == "memory" { "agents/a/memory" } else { section }
}

impl Op {
    fn log(&self) -> &str {
        log(self.section.as_deref().unwrap_or(&self.op))
    }

    fn step(&self, board: &Board) -> Step {
        let data = self.data_text.as_deref().unwrap_or_default();
        let log = self.log();
        match self.op.as_str() {
            "add_questions" => write_by(board.json(Method::POST, "questions", data)),
            "add_requests" => write_by(board.json(Method::POST, "requests", data)),
            "add_trajectories" => write_by(board.json(Method::POST, "trajectories", data)),
            "add_image" => self.add_image(board),
            "load_questions" => self.load_questions(board),
            "blackboard_from_dict" => write_by(board.json(Method::PUT, "blackboard", data)),
            "clear" => write_by(board.to(Method::DELETE, "blackboard")),
            "add_memory_item" => write_by(board.json(Method::POST, log, data)),
            "from_list_of_dicts" | "load" => write_by(board.json(Method::PUT, log, data)),
            "memory_clear" => write_by(board.to(Method::DELETE, log)),
            "delete_memory_item" => {
                let step = encoded(self.step_text.as_deref().expect("step_text"));
                write_by(board.to(Method::DELETE, &format!("{log}?steps={step}")))
            }
            "filter_memory_from_steps" => {
                let steps = self.steps_text.as_deref().expect("steps_text");
                let steps = elements(steps).unwrap_or_else(|_| vec![steps.to_owned()]);
                let steps: Vec<String> = steps.iter().map(|step| encoded(step)).collect();
                Step::Items(format!("{log}?steps={}", steps.join(",")))
            }
            "filter_memory_from_keys" => {
                let keys = self.keys_text.as_deref().expect("keys_text");
                let Ok(keys) = serde_json::from_str::<Vec<String>>(keys) else {
                    return Step::Nothing;
                };
                let keys: Vec<String> = keys.iter().map(|key| encoded(key)).collect();
                Step::Items(format!("{log}?keys={}", keys.join(",")))
            }
            "list_content" | "to_list_of_dicts" | "memory_to_json" => Step::Items(log.to_owned()),
            "get_latest_item" => Step::Latest(format!("{log}?latest=1")),
            "length" => Step::Count(log.to_owned()),
            "is_empty" => Step::IsEmpty(log.to_owned()),
            other => panic!("the table does not say how to play {other}"),
        }
    }

    fn add_image(&self, board: &Board) -> Step {
        let metadata = self.metadata_text.as_deref().map(members);
        let (Some(Ok(metadata)), false) = (metadata, self.make_dir) else {
            return Step::Nothing;
        };
        let metadata = metadata.into_iter().find(|(name, _)| name == "metadata");
        let metadata = metadata.map_or("null".to_owned(), |(_, value)| value);
        let path = self.path.as_deref().expect("path");
        let image = self.file_base64.as_deref().map_or(String::new(), |file| {
            let bytes = STANDARD.decode(file).expect("base64");
            data_url(media_type(path), &bytes)
        });
        let (path, image) = (Value::from(path), Value::from(image));
        let item =
            format!(r#"{{"metadata": {metadata}, "image_path": {path}, "image_str": {image}}}"#);
        write_by(board.json(Method::POST, "screenshots", &item))
    }

    fn load_questions(&self, board: &Board) -> Step {
        let file = match (&self.file_text, &self.file_base64) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(file)) => STANDARD.decode(file).expect("base64"),
            (None, None) => return Step::Nothing,
        };
        let last = self.last_k.map_or(String::new(), |k| format!("&last_k={k}"));
        let tail = format!("questions?lenient=true{last}");
        write_by(board.typed(Method::POST, &tail, "application/x-ndjson", file))
    }
}

/// `CPython`'s guess from a suffix, as the original falls back on it.
fn media_type(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map_or("", |(_, suffix)| suffix) {
        "jpg" | "jpeg" | "jpe" => "image/jpeg",
        "gif" => "image/gif",
        "bmp" => "image/bmp",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "ico" => "image/vnd.microsoft.icon",
        "avif" => "image/avif",
        "tif" | "tiff" => "image/tiff",
        _ => "image/png",
    }
}

impl Outcome {
    /// The original raised, or printed that it takes no such data and stored nothing.
    fn is_refusal(&self, op: &str) -> bool {
        let warned =
            self.stdout.as_deref().is_some_and(|said| said.contains("Unsupported data type"));
        self.raises.is_some() || (warned && op != "load_questions")
    }
}

impl Played {
    fn same(&mut self, what: &str, ours: &str, theirs: &str) {
        let equal = matches!((loads(ours), loads(theirs)), (Ok(a), Ok(b)) if a == b);
        if !equal {
            let cut = |text: &str| text.chars().take(300).collect::<String>();
            self.mismatches.push(format!("{what}: {} but the original {}", cut(ours), cut(theirs)));
        }
    }
}

async fn items(board: &Board, tail: &str) -> String {
    format!("[{}]", board.lines(tail).await.join(","))
}

async fn count(board: &Board, log: &str) -> u64 {
    let page = board.get(log).await.is(200).json();
    page["count"].as_u64().expect("count")
}

pub(crate) async fn play(board: &Board, vector: &Vector) -> Played {
    let mut played = Played::default();
    for (index, (op, outcome)) in vector.ops.iter().zip(&vector.results).enumerate() {
        let what = format!("op {index} {}", op.op);
        let theirs = outcome.value_text.as_ref().or(outcome.value_string.as_ref());
        let theirs = theirs.map_or("", String::as_str);
        match op.step(board) {
            Step::Nothing => played.client_side = true,
            Step::Write(request) => write(&mut played, &what, *request, op, outcome).await,
            Step::Items(tail) if outcome.raises.is_some() => {
                let status = board.get(&tail).await.status();
                if status < 400 {
                    played.mismatches.push(format!("{what}: {status} but the original raises"));
                }
            }
            Step::Items(tail) if board.get(&tail).await.status() >= 400 => {
                played.mismatches.push(format!("{what}: refused but the original gives {theirs}"));
            }
            Step::Items(tail) => played.same(&what, &items(board, &tail).await, theirs),
            Step::Latest(tail) => {
                let lines = board.lines(&tail).await;
                played.same(&what, lines.first().map_or("null", String::as_str), theirs);
            }
            Step::Count(log) => played.same(&what, &count(board, &log).await.to_string(), theirs),
            Step::IsEmpty(log) => {
                let empty = count(board, &log).await == 0;
                played.same(&what, &empty.to_string(), theirs);
            }
        }
    }
    compare(&mut played, board, &vector.expect).await;
    played
}

async fn write(
    played: &mut Played,
    what: &str,
    request: RequestBuilder,
    op: &Op,
    outcome: &Outcome,
) {
    let answer = ask(request).await;
    match (answer.status(), outcome.is_refusal(&op.op)) {
        (200 | 201, false) | (400..=499, true) => {}
        (status, true) => {
            played.mismatches.push(format!("{what}: {status} but the original refuses"));
        }
        (status, false) => {
            played.mismatches.push(format!("{what}: {status} but the original takes it"));
        }
    }
}

async fn compare(played: &mut Played, board: &Board, expect: &Expect) {
    let prompt = board.get("prompt").await;
    played.same("prompt", prompt.is(200).text(), &expect.prompt_text);
    let parts = prompt.json();
    for (index, heading, text) in [
        (1, "[Questions & Answers:]", &expect.questions_json),
        (2, "[Request History:]", &expect.requests_json),
        (3, "[Step Trajectories Completed Previously:]", &expect.trajectories_json),
    ] {
        if parts[index]["text"] != format!("{heading}\n {text}") {
            played.mismatches.push(format!("the text after {heading}: {}", parts[index]));
        }
    }
    let dictionary = board.dictionary().await;
    played.same("blackboard", &dictionary, &expect.json);
    let screenshots = members(&dictionary).expect("an object");
    let screenshots = screenshots.iter().find(|(name, _)| name == "screenshots");
    let screenshots = &screenshots.expect("screenshots").1;
    played.same("screenshots", screenshots, &expect.screenshots_json);

    let described = board.get("").await.json();
    played.same("is_empty", &described["is_empty"].to_string(), &expect.is_empty.to_string());
    for (section, length) in &expect.lengths {
        let count = &described["counts"][section];
        played.same(&format!("counts.{section}"), &count.to_string(), &length.to_string());
    }
    let memory = items(board, log("memory")).await;
    for text in [&expect.memory_json, &expect.memory_list_text].into_iter().flatten() {
        played.same("memory", &memory, text);
    }
    if let Some(length) = expect.memory_length {
        let count = count(board, log("memory")).await;
        played.same("memory's length", &count.to_string(), &length.to_string());
    }
}

/// Whether a section now holds just these items.
pub(crate) async fn holds(board: &Board, section: &str, list: &str) -> bool {
    let ours = loads(&items(board, &format!("{}?images=inline", log(section))).await);
    matches!((ours, loads(list)), (Ok(ours), Ok(list)) if ours == list)
}
