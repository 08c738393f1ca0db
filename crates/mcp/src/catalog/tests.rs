//! Arguments as the tools list them, beside the inputs and queries that read them.

use std::collections::{BTreeMap, BTreeSet};

use rmcp::model::Extensions;
use serde_json::{Value, json, to_value};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{RefOr, Required};
use utoipa::{IntoParams, ToSchema};

use super::{TOOLS, Visit};
use blackboard_api::attention::AttentionQuery;
use blackboard_api::inbox::InboxQuery;
use blackboard_api::intake::filter::Wanted;
use blackboard_api::intake::input::Kind;
use blackboard_api::intake::kinds::{
    After, AnswerText, Attempts, Flag, Lifetime, Options, PriorityNumber, TimeOrDuration,
    WantedMembers,
};
use blackboard_api::log_page::{FilterQuery, PageQuery};
use blackboard_api::ops::history::{Naming, Restoring};
use blackboard_api::ops::requests::{
    Cancelling, Claiming, ClaimingNext, Failing, Finishing, Judging, Retrying,
};
use blackboard_api::ops::state::Adding;
use blackboard_api::ops::transactions::Transacting;
use blackboard_api::prompt::PromptQuery;
use blackboard_api::search::SearchQuery;

/// What is declared of a tool's arguments, and what the tool reads itself.
#[derive(Default)]
struct Declared {
    members: BTreeMap<String, Value>,
    needed: BTreeSet<String>,
    /// The schemas that others refer to by name.
    named: BTreeMap<String, Value>,
    own: BTreeSet<&'static str>,
}

/// Begins with the arguments that only the tool has.
fn own<const N: usize>(names: [&'static str; N]) -> Declared {
    Declared { own: names.into(), ..Declared::default() }
}

impl Declared {
    fn input<I: ToSchema>(mut self) -> Self {
        let mut named = Vec::new();
        I::schemas(&mut named);
        self.name(named);
        let schema = to_value(I::schema()).unwrap();
        self.members.extend(schema["properties"].as_object().cloned().unwrap());
        let needed = schema["required"].as_array().into_iter().flatten();
        self.needed.extend(needed.map(|name| name.as_str().unwrap().to_owned()));
        self
    }

    fn query<Q: IntoParams>(mut self) -> Self {
        for parameter in Q::into_params(|| None) {
            // The tools name an agent that only filters otherwise than the one that calls.
            let name = if parameter.name == "agent" { "by".to_owned() } else { parameter.name };
            if parameter.required == Required::True {
                self.needed.insert(name.clone());
            }
            self.members.insert(name, to_value(parameter.schema).unwrap());
        }
        self
    }

    fn kind<K: Kind>(mut self, name: &str) -> Self {
        let mut named = Vec::new();
        K::named(&mut named);
        self.name(named);
        self.members.insert(name.to_owned(), to_value(K::schema()).unwrap());
        self
    }

    fn name(&mut self, named: Vec<(String, RefOr<Schema>)>) {
        let named = named.into_iter().map(|(name, schema)| (name, to_value(schema).unwrap()));
        self.named.extend(named);
    }

    /// Returns the types that a schema allows; none for any.
    fn types(&self, schema: &Value) -> BTreeSet<String> {
        let each = |schemas: &Value| {
            schemas.as_array().unwrap().iter().flat_map(|schema| self.types(schema)).collect()
        };
        if let Some(name) = schema["$ref"].as_str() {
            return self.types(&self.named[name.rsplit('/').next().unwrap()]);
        }
        match (&schema["oneOf"], &schema["type"]) {
            (any @ Value::Array(_), _) => each(any),
            (_, Value::Array(names)) => {
                names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
            }
            (_, Value::String(name)) => [name.clone()].into(),
            // A list of words is of strings, with or without saying so.
            _ if schema["enum"][0].is_string() => ["string".to_owned()].into(),
            _ => BTreeSet::new(),
        }
    }

    /// Compares an argument with its declaration, of which it may leave out bounds.
    fn compare(&self, at: &str, listed: &Value, declared: &Value) {
        // What takes any value may be listed as what it mostly is.
        let (listed_types, declared_types) = (self.types(listed), self.types(declared));
        assert!(listed_types == declared_types || declared_types.is_empty(), "{at}");
        for (key, value) in listed.as_object().unwrap() {
            match key.as_str() {
                "type" | "description" => {}
                "items" => self.compare(&format!("{at}/items"), value, &declared["items"]),
                _ => assert_eq!(value, &declared[key], "{at}: {key}"),
            }
        }
    }
}

/// Returns what is declared of each tool's arguments.
fn declared() -> [(&'static str, Declared); TOOLS.len()] {
    [
        ("board_overview", own(["prefix", "after"])),
        ("read_log", own(["log", "max_tokens"]).query::<PageQuery>().query::<FilterQuery>()),
        (
            "append_items",
            own(["log", "items"])
                .kind::<After>("after")
                .kind::<Attempts>("attempts")
                .kind::<PriorityNumber>("priority")
                .kind::<TimeOrDuration>("not_before")
                .kind::<TimeOrDuration>("deadline")
                .kind::<Flag>("review"),
        ),
        ("add_screenshot", own(["image", "metadata"])),
        ("get_screenshot", own(["seq", "full"])),
        ("render_prompt", own([]).query::<PromptQuery>()),
        ("search_board", own([]).query::<SearchQuery>()),
        ("get_state", own(["path", "max_tokens"])),
        ("set_state", own(["path", "value", "expected_tag"]).kind::<Lifetime>("ttl")),
        ("add_to_state", own(["path"]).input::<Adding>()),
        ("transact", own([]).input::<Transacting>()),
        ("remember", own(["item"])),
        ("recall", own(["of", "max_tokens"]).query::<PageQuery>().query::<FilterQuery>()),
        (
            "ask_person",
            own(["question", "seq", "default", "wait_s", "ask_here"])
                .kind::<Lifetime>("expires")
                .kind::<Options>("options"),
        ),
        ("answer_question", own(["seq", "skip"]).kind::<AnswerText>("answer")),
        ("list_open_questions", own([]).query::<InboxQuery>()),
        ("claim_request", own(["seq", "wait_s"]).input::<Claiming>().input::<ClaimingNext>()),
        (
            "finish_request",
            own(["seq", "outcome"])
                .input::<Finishing>()
                .input::<Failing>()
                .input::<Cancelling>()
                .input::<Retrying>(),
        ),
        ("review_request", own(["seq"]).input::<Judging>()),
        ("send_message", own(["to", "item", "thread", "reply_to"])),
        (
            "attention",
            own(["ack", "wait_s"]).query::<AttentionQuery>().kind::<WantedMembers>("match"),
        ),
        ("wait_for_change", own(["after", "wait_s"]).query::<Wanted>()),
        ("checkpoint_board", own([]).input::<Naming>()),
        ("compare_board", own(["from", "to", "max_tokens"])),
        ("restore_board", own([]).input::<Restoring>()),
    ]
}

#[test]
fn arguments_are_listed_as_they_are_declared() {
    for (tool, (name, declared)) in TOOLS.iter().zip(declared()) {
        assert_eq!(tool.name, name);
        let listed: BTreeMap<String, Value> = serde_json::from_str(tool.properties.text()).unwrap();
        for (argument, listed) in &listed {
            let at = format!("{name}/{argument}");
            match declared.members.get(argument) {
                Some(member) => declared.compare(&at, listed, member),
                None => assert!(declared.own.contains(argument.as_str()), "{at} is undeclared"),
            }
        }
        for argument in &declared.own {
            assert!(listed.contains_key(*argument), "{name}/{argument} is not listed");
        }
        for argument in &declared.needed {
            assert!(tool.required.contains(&argument.as_str()), "{name}/{argument} is needed");
        }
    }
}

/// Returns a schema and all below it.
fn all(schema: &Value) -> Vec<&Value> {
    let below = |name: &str| schema[name].as_array().into_iter().flatten();
    let members = schema["properties"].as_object().into_iter().flat_map(|members| members.values());
    let parts = members.chain(schema.get("items")).chain(below("anyOf"));
    [schema].into_iter().chain(parts.flat_map(all)).collect()
}

#[test]
fn a_shown_argument_has_one_type() {
    let visit = Visit::of(&Extensions::new()).unwrap();
    for tool in &TOOLS {
        let schema = Value::Object(tool.schema(&visit));
        for part in all(&schema).into_iter().filter(|part| **part != json!({})) {
            let is_any = part["anyOf"].is_array() && part.get("type").is_none();
            assert!(part["type"].is_string() || is_any, "{}: {part}", tool.name);
            assert_eq!(
                part["type"] == "array",
                part.get("items").is_some(),
                "{}: {part}",
                tool.name
            );
            let is_free = part["additionalProperties"] == true;
            assert_eq!(
                part["type"] == "object",
                is_free || *part == schema,
                "{}: {part}",
                tool.name
            );
        }
    }
}

#[test]
fn a_tools_first_sentence_stands_alone() {
    for tool in &TOOLS {
        let first = tool.description.split(". ").next().unwrap();
        assert!(first.split(' ').count() >= 6, "{}: {first}", tool.name);
        let names = ["board", "person", "request"].iter().any(|word| first.contains(word));
        assert!(names && !first.contains("Example"), "{}: {first}", tool.name);
    }
}
