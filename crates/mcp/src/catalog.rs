//! The tools: names, descriptions, schemas, annotations, sets.
//!
//! A description says when to use the tool, has one example, and is all that a model may see of this server.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::call::answer::structured_schema;
use super::call::schema::Properties;
use super::call::visit::{TOKENS_MAX, ToolSet, Visit};
use super::call::{Call, Running};
use super::tools::{
    attention, changes, history, logs, messages, overview, prompt, questions, requests,
    screenshots, search, state, transact,
};
use blackboard_auth::Scope;

/// The effect of a tool on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Adds,
    /// Writes; a repeat changes nothing more.
    Sets,
    /// Reads, and notes what the agent has dealt with. A repeat changes nothing more, and is answered anew.
    Acknowledges,
    /// Takes something off the board.
    Destroys,
}

/// Whether a tool acts as an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acts {
    No,
    May,
    /// Without one it is rejected.
    Must,
}

/// A tool of the board.
pub(super) struct Definition {
    pub(super) name: &'static str,
    description: &'static str,
    /// The members of its schema as JSON, without those that several tools have.
    pub(super) properties: Properties,
    required: &'static [&'static str],
    effect: Effect,
    /// True if a call without a session covers all sessions.
    covers_all: bool,
    acts: Acts,
    sets: &'static [ToolSet],
    pub(super) run: fn(Call) -> Running,
}

/// The tool to begin with.
const FIRST: &str = "board_overview";

/// The characters that a reading may have: those of the most tokens that can be asked for, with its marks.
const RESULT_CHARS_MAX: u64 = CHARS_PER_TOKEN * TOKENS_MAX;

/// The most characters of a token: those of English words.
const CHARS_PER_TOKEN: u64 = 5;

const WORKER: &[ToolSet] = &[ToolSet::Worker];
const ASKER: &[ToolSet] = &[ToolSet::Asker];
const BOTH: &[ToolSet] = &[ToolSet::Worker, ToolSet::Asker];
const NEITHER: &[ToolSet] = &[];

/// All tools, in the order in which they are listed.
pub(super) static TOOLS: [Definition; 25] = [
    Definition {
        name: FIRST,
        description: "See the board at a glance; call it first. Without a session: sessions. Example: {}",
        properties: Properties::of(r#"{"prefix":{"type":"string"},"after":{"type":"string"}}"#),
        required: &[],
        effect: Effect::Reads,
        covers_all: true,
        acts: Acts::No,
        sets: BOTH,
        run: overview::board_overview,
    },
    Definition {
        name: "read_log",
        description: "Read a log of the board (memory, messages: your own), newest or after a seq. \
            Example: {\"log\":\"trajectories\"}",
        properties: Properties::of(
            r#"{"log":{"type":"string","enum":["questions","requests","trajectories","screenshots","memory","messages"]},"latest":{"type":"integer"},"after":{"type":"integer"},"before":{"type":"integer"},"contains":{"type":"string"},"by":{"type":"string"},"max_tokens":{"type":"integer"}}"#,
        ),
        required: &["log"],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::May,
        sets: BOTH,
        run: logs::read_log,
    },
    Definition {
        name: "append_items",
        description: "Add to a log of the board: steps to trajectories, work (tasks) for others to requests. \
            Example: {\"log\":\"requests\",\"items\":[\"sum up report.pdf\"]}",
        properties: Properties::of(
            r#"{"log":{"type":"string","enum":["questions","requests","trajectories"]},"items":{"type":"array","items":{"type":["object","string"]}},"after":{"type":"array","items":{"type":"integer"}},"attempts":{"type":"integer"}}"#,
        ),
        required: &["log", "items"],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::May,
        sets: WORKER,
        run: logs::append_items,
    },
    Definition {
        name: "add_screenshot",
        description: "Add a screenshot or other image to the board. Example: \
            {\"image\":\"data:image/png;base64,…\",\"metadata\":\"login page\"}",
        properties: Properties::of(
            r#"{"image":{"type":"string","description":"data URL"},"metadata":{"type":["string","object"]}}"#,
        ),
        required: &["image"],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::May,
        sets: NEITHER,
        run: screenshots::add_screenshot,
    },
    Definition {
        name: "get_screenshot",
        description: "See a screenshot of the board as an image, scaled down unless 'full'. Without seq: the newest. \
            Example: {\"seq\":3}",
        properties: Properties::of(r#"{"seq":{"type":"integer"},"full":{"type":"boolean"}}"#),
        required: &[],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::No,
        sets: ASKER,
        run: screenshots::get_screenshot,
    },
    Definition {
        name: "render_prompt",
        description: "Get the board as one Markdown text, ready for a prompt, within max_tokens, newest kept. Example: \
            {\"include\":[\"requests\",\"trajectories\",\"state\"],\"max_tokens\":2000}",
        properties: Properties::of(
            r#"{"include":{"type":"array","items":{"type":"string"}},"latest":{"type":"integer"},"by":{"type":"string"},"max_tokens":{"type":"integer"}}"#,
        ),
        required: &[],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::No,
        sets: NEITHER,
        run: prompt::render_prompt,
    },
    Definition {
        name: "search_board",
        description: "Find entries of the board by words, in all sessions unless one is named. All words of q must \
            occur; \"in a row\", begin*. To exclude a word, put ' -' before it; to find a flag such as \"-xzf\", put it \
            in quotation marks. Example: {\"q\":\"disk full\"}",
        properties: Properties::of(
            r#"{"q":{"type":"string"},"log":{"type":"string","enum":["questions","requests","trajectories","screenshots","memory","messages"]},"limit":{"type":"integer"}}"#,
        ),
        required: &["q"],
        effect: Effect::Reads,
        covers_all: true,
        acts: Acts::No,
        sets: NEITHER,
        run: search::search_board,
    },
    Definition {
        name: "get_state",
        description: "Read the board's state at a path, with its tag. Example: {\"path\":\"tasks/t1\"}",
        properties: Properties::of(r#"{"path":{"type":"string"},"max_tokens":{"type":"integer"}}"#),
        required: &[],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::No,
        sets: WORKER,
        run: state::get_state,
    },
    Definition {
        name: "set_state",
        description: "Set the board's shared state at a path; without a value, delete it. With expected_tag (of \
            get_state, or absent) only if unchanged. Example: {\"path\":\"t1\",\"value\":\"ready\"}",
        properties: Properties::of(
            r#"{"path":{"type":"string"},"value":{},"expected_tag":{"type":"string"},"ttl":{"type":"string"}}"#,
        ),
        required: &["path"],
        // An earlier value stays in the history, and with expected_tag nothing is overwritten unseen.
        effect: Effect::Sets,
        covers_all: false,
        acts: Acts::May,
        sets: WORKER,
        run: state::set_state,
    },
    Definition {
        name: "add_to_state",
        description: "Add to a number in the board's shared state, safely beside others; returns the sum. Example: \
            {\"path\":\"done\",\"add\":1}",
        properties: Properties::of(r#"{"path":{"type":"string"},"add":{"type":"number"}}"#),
        required: &["path", "add"],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::May,
        sets: NEITHER,
        run: state::add_to_state,
    },
    Definition {
        name: "transact",
        description: "Make several writes to the board in one commit, if tests hold. Verbs: put, patch, add, delete, \
            append, claim, claim_next, done, cancel, verdict, answer, ack, status. Example: \
            {\"if\":[{\"path\":\"lock\",\"absent\":true}],\"then\":[{\"put\":\"lock\",\"value\":1},{\"append\":\"trajectories\",\"item\":{\"step\":1}}]}",
        properties: Properties::of(
            r#"{"if":{"type":"array","items":{"type":"object"}},"then":{"type":"array","items":{"type":"object"}},"else":{"type":"array","items":{"type":"object"}}}"#,
        ),
        required: &["then"],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::May,
        sets: NEITHER,
        run: transact::transact,
    },
    Definition {
        name: "remember",
        description: "Save a note to your own memory on the board. Example: {\"item\":\"login: page 2\"}",
        properties: Properties::of(r#"{"item":{"type":["string","object"]}}"#),
        required: &["item"],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::Must,
        sets: WORKER,
        run: logs::remember,
    },
    Definition {
        name: "recall",
        description: "Read your own notes on the board, the newest 10 by default. Example: {\"contains\":\"login\"}",
        properties: Properties::of(
            r#"{"latest":{"type":"integer"},"contains":{"type":"string"},"of":{"type":"string","description":"another agent"},"max_tokens":{"type":"integer"}}"#,
        ),
        required: &[],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::Must,
        sets: NEITHER,
        run: logs::recall,
    },
    Definition {
        name: "ask_person",
        description: "Ask a person (user), and wait for the answer. Example: {\"question\":\"Which file?\"}",
        properties: Properties::of(
            r#"{"question":{"type":"string"},"seq":{"type":"integer"},"options":{"type":"array","items":{"type":"string"}},"default":{"type":"string"},"expires":{"type":"string"},"wait_s":{"type":"integer"},"ask_here":{"type":"boolean","description":"host's user"}}"#,
        ),
        required: &[],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::May,
        sets: WORKER,
        run: questions::ask_person,
    },
    Definition {
        name: "answer_question",
        description: "Answer an open question of the board, or skip it; the first answer wins. Example: \
            {\"seq\":4,\"answer\":\"a.xlsx\"}",
        properties: Properties::of(
            r#"{"seq":{"type":"integer"},"answer":{"type":"string"},"skip":{"type":"boolean"}}"#,
        ),
        required: &["seq"],
        effect: Effect::Sets,
        covers_all: false,
        acts: Acts::May,
        sets: ASKER,
        run: questions::answer_question,
    },
    Definition {
        name: "list_open_questions",
        description: "List the board's questions that wait for a person's answer, in all sessions unless one is named. \
            Example: {}",
        properties: Properties::of(
            r#"{"after":{"type":"string","description":"'next' of the page before"}}"#,
        ),
        required: &[],
        effect: Effect::Reads,
        covers_all: true,
        acts: Acts::No,
        sets: ASKER,
        run: questions::list_open_questions,
    },
    Definition {
        name: "claim_request",
        description: "Claim the board's next open request (task) that matches, for you alone; waits. \
            Example: {\"match\":{\"kind\":\"sum\"},\"ttl\":\"5m\"}",
        properties: Properties::of(
            r#"{"match":{"type":"object"},"seq":{"type":"integer"},"ttl":{"type":"string"},"wait_s":{"type":"integer"}}"#,
        ),
        required: &[],
        effect: Effect::Sets,
        covers_all: false,
        acts: Acts::Must,
        sets: WORKER,
        run: requests::claim_request,
    },
    Definition {
        name: "finish_request",
        description: "End a request that you claimed: done (result), failed (reason); or anyone's: cancelled, \
            retry. Example: {\"seq\":7,\"fence\":41,\"result\":{\"total\":12}}",
        properties: Properties::of(
            r#"{"seq":{"type":"integer"},"fence":{"type":"integer"},"result":{},"outcome":{"type":"string","enum":["done","failed","cancelled","retry"]},"reason":{"type":"string"}}"#,
        ),
        required: &["seq"],
        effect: Effect::Sets,
        covers_all: false,
        acts: Acts::May,
        sets: BOTH,
        run: requests::finish_request,
    },
    Definition {
        name: "review_request",
        description: "Accept another agent's result of a request that is in review, or reject it with a reason. \
            Example: {\"seq\":7,\"fence\":41,\"accept\":true}",
        properties: Properties::of(
            r#"{"seq":{"type":"integer"},"fence":{"type":"integer"},"accept":{"type":"boolean"},"reason":{"type":"string"}}"#,
        ),
        required: &["seq", "accept"],
        effect: Effect::Sets,
        covers_all: false,
        acts: Acts::Must,
        sets: ASKER,
        run: requests::review_request,
    },
    Definition {
        name: "send_message",
        description: "Send a message to an agent of the board. Example: {\"to\":\"AppAgent\",\"item\":\"the file is ready\"}",
        properties: Properties::of(
            r#"{"to":{"type":"string"},"item":{"type":["string","object"]},"thread":{"type":"string"},"reply_to":{"type":"integer"}}"#,
        ),
        required: &["to", "item"],
        effect: Effect::Adds,
        covers_all: false,
        acts: Acts::May,
        sets: BOTH,
        run: messages::send_message,
    },
    Definition {
        name: "attention",
        description: "See or await what concerns you on the board: messages, answers, requests. ack: messages dealt \
            with. Example: {\"after\":41,\"ack\":[3]}",
        properties: Properties::of(
            r#"{"ack":{"type":"array","items":{"type":"integer"}},"after":{"type":"integer"},"match":{"type":"object"},"wait_s":{"type":"integer"}}"#,
        ),
        required: &[],
        effect: Effect::Acknowledges,
        covers_all: false,
        acts: Acts::Must,
        sets: BOTH,
        run: attention::attention,
    },
    Definition {
        name: "wait_for_change",
        description: "Wait until the board changes after a revision, and see the changes. Example: \
            {\"after\":41,\"on\":[\"requests\",\"state/tasks\"]}",
        properties: Properties::of(
            r#"{"after":{"type":"integer"},"on":{"type":"array","items":{"type":"string"}},"wait_s":{"type":"integer"}}"#,
        ),
        required: &[],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::No,
        sets: ASKER,
        run: changes::wait_for_change,
    },
    Definition {
        name: "checkpoint_board",
        description: "Name the board as it is now, to compare with or restore later. Example: \
            {\"name\":\"before-import\"}",
        properties: Properties::of(r#"{"name":{"type":"string"}}"#),
        required: &["name"],
        effect: Effect::Sets,
        covers_all: false,
        acts: Acts::May,
        sets: NEITHER,
        run: history::checkpoint_board,
    },
    Definition {
        name: "compare_board",
        description: "Show what changed on the board between two points (revision or checkpoint; 'to' is now). Example: \
            {\"from\":\"before-import\"}",
        properties: Properties::of(
            r#"{"from":{"type":["string","integer"]},"to":{"type":["string","integer"]},"max_tokens":{"type":"integer"}}"#,
        ),
        required: &["from"],
        effect: Effect::Reads,
        covers_all: false,
        acts: Acts::No,
        sets: NEITHER,
        run: history::compare_board,
    },
    Definition {
        name: "restore_board",
        description: "Return the whole board, for everyone, to an earlier point (revision or checkpoint). Example: \
            {\"at\":\"before-import\"}",
        properties: Properties::of(r#"{"at":{"type":["string","integer"]}}"#),
        required: &["at"],
        effect: Effect::Destroys,
        covers_all: false,
        acts: Acts::May,
        sets: NEITHER,
        run: history::restore_board,
    },
];

/// Returns the tool of this name.
pub(super) fn tool(name: &str) -> Option<&'static Definition> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Definition {
    /// Returns true if the tool is in the requested set, and the caller may use it.
    pub(super) fn is_shown(&self, visit: &Visit) -> bool {
        let chosen = visit.tools == ToolSet::All || self.sets.contains(&visit.tools);
        chosen && visit.caller.may(self.scope())
    }

    /// Returns true if the tool changes nothing.
    pub(super) fn reads(&self) -> bool {
        self.effect == Effect::Reads
    }

    /// Returns true if a call may wait for something to happen.
    pub(super) fn waits(&self) -> bool {
        self.properties.get("wait_s").is_some()
    }

    /// Returns the scope that the tool needs at least.
    fn scope(&self) -> Scope {
        if self.reads() { Scope::Read } else { Scope::Write }
    }

    /// Describes the tool to a client.
    pub(super) fn describe(&self, visit: &Visit) -> Tool {
        let mut tool = Tool::new(self.name, self.description, Arc::new(self.schema(visit)))
            .with_annotations(self.annotations());
        tool.output_schema = visit.structured.then(|| Arc::new(structured_schema()));
        tool.meta = self.meta();
        tool
    }

    /// Returns what Claude Code reads: the first tool's schema is shown before a search for tools, and a reading goes to the
    /// model instead of into a file.
    fn meta(&self) -> Option<MetaObject> {
        let mut meta = JsonObject::new();
        if self.name == FIRST {
            meta.insert("anthropic/alwaysLoad".to_owned(), true.into());
        }
        if self.reads() {
            meta.insert("anthropic/maxResultSizeChars".to_owned(), RESULT_CHARS_MAX.into());
        }
        (!meta.is_empty()).then_some(MetaObject(meta))
    }

    fn schema(&self, visit: &Visit) -> JsonObject {
        let mut properties: JsonObject =
            serde_json::from_str(self.properties.text()).unwrap_or_default();
        properties.values_mut().for_each(shown);
        let text = json!({ "type": "string" });
        properties.insert("session".to_owned(), text.clone());
        if visit.may_name_agent() {
            let described = json!({ "type": "string", "description": "your name" });
            let agent = match self.acts {
                Acts::No => None,
                Acts::May => Some(text.clone()),
                Acts::Must => Some(described),
            };
            properties.extend(agent.map(|agent| ("agent".to_owned(), agent)));
        }
        if !matches!(self.effect, Effect::Reads | Effect::Acknowledges) {
            properties.insert("idempotency_key".to_owned(), text);
        }
        let mut required = self.required.to_vec();
        if !self.covers_all && visit.session.is_none() {
            required.push("session");
        }
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), Value::from(required));
        }
        schema
    }

    /// Returns the hints that differ from the protocol's defaults, and whether the tool destroys: a tool writes, destroys,
    /// and does more at a repeat unless it says otherwise.
    fn annotations(&self) -> ToolAnnotations {
        let closed = ToolAnnotations::new().open_world(false);
        match self.effect {
            Effect::Reads => closed.read_only(true),
            Effect::Adds => closed.destructive(false),
            Effect::Sets | Effect::Acknowledges => closed.destructive(false).idempotent(true),
            Effect::Destroys => closed.destructive(true).idempotent(true),
        }
    }
}

/// Makes a schema one that hosts take. Of several types it keeps the first, since validators of hosts warn at a list. An object,
/// and a value of any type, says that its members are free: so a conversion to `OpenAI`'s strict mode, which knows no such
/// thing, fails, and the tool stays as it is, instead of taking empty objects alone.
fn shown(schema: &mut Value) {
    let free = json!({ "type": "object", "additionalProperties": true });
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = members.get("type") {
        let first = types.first().cloned().unwrap_or_default();
        members.insert("type".to_owned(), first);
    }
    match members.get("type").and_then(Value::as_str) {
        None => {
            members.insert("anyOf".to_owned(), json!([free, {}]));
        }
        Some("object") => _ = members.insert("additionalProperties".to_owned(), true.into()),
        Some(_) => {}
    }
    if let Some(items) = members.get_mut("items") {
        shown(items);
    }
}

#[cfg(test)]
mod tests;
