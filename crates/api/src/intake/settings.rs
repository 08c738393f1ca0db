//! Session settings: parsing, and rendering as JSON.
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type,
};

use super::fields::{flag, members, names, text_of, ttl_member};
use super::input::{inputs, kinds, named, part};
use super::profile::{PromptProfilesBody, profiles};
use crate::refusal::Refusal;
use crate::refusal::{child, invalid_field, object_required, unknown_field};
use crate::schema;
use crate::schema::settings::BOUNDED;
use crate::schema::shapes::text;
use blackboard_board::json;
use blackboard_board::json::Kind;
use blackboard_board::{
    AGENT_STATES_MAX, AgentStates, Budget, ByteSize, CAP_MAX, CAPS_MAX, Cap, HISTORY_KEYS_MAX,
    History, MaxItems, MaxItemsEach, Moves, PromptProfiles, Set, Settings, SettingsPatch, Status,
    Ttl, is_known,
};

/// The maximum number of predecessors or successors of a status: all statuses that a session can have.
const MOVES_MAX: usize = AGENT_STATES_MAX + Status::BUILT_IN.len();

/// The text for a history retained as a whole, the default.
const HISTORY_ALL: &str = "all";

macro_rules! settings {
    ($(
        $name:ident $word:literal:
        $(#[$attribute:meta])+
        shown: $shown:ty = $show:expr;
        $(#[doc = $about:literal])*
        change: $kind:ty;
    )+) => {
        /// A session's settings; an absent member has its default.
        #[derive(Debug, Serialize, ToSchema)]
        pub struct SettingsBody {
            $(
                $(#[$attribute])+
                #[serde(skip_serializing_if = "Option::is_none")]
                $name: Option<$shown>,
            )+
        }

        inputs! {
            /// Settings to change.
            SettingsInput as "SettingsPatchBody" {
                $(
                    $(#[doc = $about])*
                    $name $word: $kind = Set::Keep,
                )+
            }
        }

        impl From<&Settings> for SettingsBody {
            fn from(settings: &Settings) -> Self {
                Self { $($name: settings.$name.as_ref().map($show),)+ }
            }
        }

        /// Parses the member `settings` of a `PUT` of a session.
        pub(crate) fn settings_patch(object: &str) -> Result<SettingsPatch, Refusal> {
            let SettingsInput { $($name),+ } = part("/settings", object)?;
            Ok(SettingsPatch { $($name),+ })
        }
    };
}

// Each setting: its form in answers, and its kind in requests, of those below.
settings! {
    history_keys "history_keys":
    /// The members of trajectories and memories that a prompt shows; all if absent.
    #[schema(nullable = false)]
    shown: Vec<String> = Clone::clone;
    /// The members of trajectories and memories that a prompt shows, each of at most 256 bytes; null shows all.
    change: HistoryKeys;

    screenshot_to_memory "screenshot_to_memory":
    /// True if posted screenshots are kept; true if absent.
    #[schema(nullable = false)]
    shown: bool = Clone::clone;
    /// True if posted screenshots are kept; null is the default, true.
    change: SetFlag;

    max_items "max_items":
    /// The maximum number of items in its logs; unlimited if absent.
    #[schema(required = false, schema_with = schema::settings::max_items)]
    shown: MaxItems = Clone::clone;
    change: SetMaxItems;

    ttl "ttl":
    /// The lifetime of the session after its last write; unlimited if absent.
    #[schema(nullable = false, example = "30d")]
    shown: String = ToString::to_string;
    /// The lifetime of the session after its last write: a whole number with `ms`, `s`, `m`, `h` or `d`, at most
    /// `36500d`; null is unlimited.
    change: SetTtl;

    history "history":
    /// The retained history; all of it if absent.
    #[schema(required = false, schema_with = schema::settings::history)]
    shown: HistoryBody = |history| (*history).into();
    change: SetHistory;

    agent_states "agent_states":
    /// The statuses that the session's agents may have besides the built-in ones.
    #[schema(nullable = false, value_type = Option<BTreeMap<String, MovesInput>>)]
    shown: AgentStates = Clone::clone;
    change: SetStates;

    profiles "profiles":
    /// The session's prompt profiles, by name.
    #[schema(nullable = false)]
    shown: PromptProfilesBody = Into::into;
    change: SetProfiles;

    cost_max "cost_max":
    /// The budget of all agents together, in the unit of `cost`; unlimited if absent.
    #[schema(nullable = false, example = 12.5)]
    shown: f64 = |max| max.cost().to_f64();
    /// The budget of all agents together, in the unit of `cost`, counted in billionths. When the sum of the memories' costs
    /// has passed it, appends to memories and trajectories, and claims, are rejected; null is unlimited.
    change: SetCost;

    running_max "running_max":
    /// The caps on requests that are claimed at once.
    #[schema(nullable = false, value_type = Option<Vec<CapInput>>)]
    shown: Vec<Cap> = Clone::clone;
    change: SetCaps;
}

/// The retained history: a number of revisions, or an age or a size with its unit.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum HistoryBody {
    Revisions(u64),
    WithUnit(String),
}

impl From<History> for HistoryBody {
    fn from(history: History) -> Self {
        match history {
            History::Revisions(count) => Self::Revisions(count),
            History::Bytes(bytes) => Self::WithUnit(ByteSize(bytes).to_string()),
            History::Age(age) => Self::WithUnit(age.to_string()),
        }
    }
}

kinds! {
    /// The members that a prompt shows.
    HistoryKeys: Set<Vec<String>> = |at, value| set(at, value, history_keys),
        names_or_null(HISTORY_KEYS_MAX);
    /// True or false.
    SetFlag: Set<bool> = |at, value| set(at, value, flag), or_null(Type::Boolean);
    /// The maximum number of items.
    SetMaxItems: Set<MaxItems> = |at, value| set(at, value, max_items),
        schema::settings::max_items_patch();
    /// A lifetime.
    SetTtl: Set<Ttl> = |at, value| set(at, value, ttl_member), schema::with_example(
        or_null(Type::String).pattern(Some("^0*[1-9][0-9]*(ms|s|m|h|d)$")),
        "30d",
    );
    /// The retained history.
    SetHistory: Set<History> = history, schema::settings::history_patch();
    /// Caps on requests that are claimed at once.
    SetCaps: Set<Vec<Cap>> = |at, value| set(at, value, caps), caps_or_null(), naming CapInput;
    /// Statuses of a session.
    SetStates: Set<AgentStates> = |at, value| set(at, value, agent_states),
        schema::settings::agent_states_patch(), naming MovesInput;
    /// Prompt profiles.
    SetProfiles: Set<PromptProfiles> = |at, value| set(at, value, profiles),
        schema::profiles::profiles_patch();
    /// A budget.
    SetCost: Set<Budget> = |at, value| set(at, value, cost_max), schema::with_example(
        or_null(Type::Number)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
            .minimum(Some(0))
            .maximum(Some(1_000_000_000)),
        12.5,
    );
    /// The member by which a cap counts.
    CapMember: String = text_of_string, text();
    /// The number of claims that a cap allows.
    CapNumber: u32 = cap_max, ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(1))
        .maximum(Some(CAP_MAX));
    /// Statuses beside one.
    Statuses: Vec<String> = |at, value| names(at, value, MOVES_MAX), ArrayBuilder::new()
        .items(text())
        .max_items(Some(MOVES_MAX));
}

inputs! {
    /// The predecessors and successors of a status that the session adds.
    MovesInput as "MovesBody" {
        /// The statuses that may precede it, built in or of this session; none if absent.
        from "from": Statuses = Vec::new(),
        /// The statuses that may follow it; none if absent.
        to "to": Statuses = Vec::new(),
    }
}

inputs! {
    /// A cap on requests that are claimed at once.
    CapInput as "CapBody" {
        /// The member of an item's root by whose value requests are counted; those without it do not count. Absent: all
        /// requests count together.
        by "by": CapMember,
        /// The maximum number of requests that are claimed at once, of all or with one value.
        max "max": CapNumber as needed,
    }
}

/// Reads caps.
fn caps(at: &str, value: &str) -> Result<Vec<Cap>, Refusal> {
    if json::kind(value) != Kind::Array {
        return Err(invalid_field(at.to_owned(), "expected an array of caps"));
    }
    let mut caps = Vec::new();
    for (index, element) in json::elements(value).enumerate() {
        let at = format!("{at}/{index}");
        if index == CAPS_MAX {
            return Err(invalid_field(at, format!("expected at most {CAPS_MAX} caps")));
        }
        let CapInput { by, max } = part(&at, element)?;
        caps.push(Cap { by, max });
    }
    Ok(caps)
}

fn cap_max(at: &str, value: &str) -> Result<u32, Refusal> {
    let max = json::whole(value).and_then(|max| u32::try_from(max).ok());
    let max = max.filter(|max| (1..=CAP_MAX).contains(max));
    let why = || format!("expected a whole number from 1 to {CAP_MAX}");
    max.ok_or_else(|| invalid_field(at.to_owned(), why()))
}

fn text_of_string(at: &str, value: &str) -> Result<String, Refusal> {
    if json::kind(value) != Kind::String {
        return Err(invalid_field(at.to_owned(), "expected the name of a member"));
    }
    text_of(value, at)
}

fn caps_or_null() -> ArrayBuilder {
    let array = ArrayBuilder::new().schema_type(SchemaType::from_iter([Type::Array, Type::Null]));
    array.items(named::<CapInput>(&[])).max_items(Some(CAPS_MAX))
}

fn or_null(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([kind, Type::Null]))
}

fn names_or_null(max: usize) -> ArrayBuilder {
    let array = ArrayBuilder::new().schema_type(SchemaType::from_iter([Type::Array, Type::Null]));
    array.items(text()).max_items(Some(max))
}

fn set<T>(
    at: &str,
    value: &str,
    read: impl Fn(&str, &str) -> Result<T, Refusal>,
) -> Result<Set<T>, Refusal> {
    if json::kind(value) == Kind::Null { Ok(Set::Reset) } else { read(at, value).map(Set::To) }
}

/// Parses a budget.
fn cost_max(at: &str, value: &str) -> Result<Budget, Refusal> {
    let is_number = json::kind(value) == Kind::Number;
    let budget = is_number.then(|| json::to_f64(value)).and_then(Budget::of);
    let why = "expected a number from 0 to 1e9, or null for no limit";
    budget.ok_or_else(|| invalid_field(at.to_owned(), why))
}

/// Parses `"all"`, an age, a number of revisions, or a size.
fn history(at: &str, value: &str) -> Result<Set<History>, Refusal> {
    let text = match json::kind(value) {
        Kind::Null => return Ok(Set::Reset),
        Kind::Number => {
            let count = json::whole(value).filter(|count| *count > 0);
            let why = "expected a number of revisions, at least 1";
            let count = count.ok_or_else(|| invalid_field(at.to_owned(), why))?;
            return Ok(Set::To(History::Revisions(count)));
        }
        Kind::String => json::decode(value),
        Kind::Object | Kind::Array | Kind::Bool => "".into(),
    };
    if text == HISTORY_ALL {
        return Ok(Set::Reset);
    }
    // A number without a unit could mean bytes as well as revisions.
    let has_unit = !text.ends_with(|last: char| last.is_ascii_digit());
    let size = text.parse().ok().filter(|ByteSize(bytes)| has_unit && *bytes > 0);
    let age = text.parse().ok().map(History::Age);
    let kept = age.or_else(|| size.map(|ByteSize(bytes)| History::Bytes(bytes)));
    let why = "expected \"all\", an age such as \"30d\", a number of revisions, or a size such as \"64MiB\"";
    kept.map(Set::To).ok_or_else(|| invalid_field(at.to_owned(), why))
}

fn history_keys(at: &str, value: &str) -> Result<Vec<String>, Refusal> {
    names(at, value, HISTORY_KEYS_MAX)
}

fn max_items(at: &str, value: &str) -> Result<MaxItems, Refusal> {
    match json::kind(value) {
        Kind::Number => count(at, value).map(MaxItems::All),
        Kind::Object => max_items_each(at, value).map(MaxItems::Each),
        Kind::Array | Kind::String | Kind::Bool | Kind::Null => {
            Err(invalid_field(at.to_owned(), "expected a number, or one for each log"))
        }
    }
}

fn max_items_each(parent: &str, object: &str) -> Result<MaxItemsEach, Refusal> {
    let mut each = MaxItemsEach::default();
    for (at, value) in members(parent, object)? {
        let max = match at.strip_prefix(parent).unwrap_or_default() {
            "/questions" => &mut each.questions,
            "/requests" => &mut each.requests,
            "/trajectories" => &mut each.trajectories,
            "/screenshots" => &mut each.screenshots,
            "/memory" => &mut each.memory,
            "/messages" => &mut each.messages,
            _ => return Err(unknown_field(at, &BOUNDED)),
        };
        *max = match json::kind(value) {
            Kind::Null => None,
            Kind::Number | Kind::Object | Kind::Array | Kind::String | Kind::Bool => {
                Some(count(&at, value)?)
            }
        };
    }
    Ok(each)
}

fn count(at: &str, value: &str) -> Result<NonZeroUsize, Refusal> {
    let count = json::whole(value).and_then(|count| usize::try_from(count).ok());
    let why = "expected a whole number from 1";
    count.and_then(NonZeroUsize::new).ok_or_else(|| invalid_field(at.to_owned(), why))
}

fn agent_states(at: &str, value: &str) -> Result<AgentStates, Refusal> {
    if json::kind(value) != Kind::Object {
        return Err(object_required(at.to_owned(), json::kind(value)));
    }
    // A status may lead to a status listed after it.
    let mut known = AgentStates::new();
    for member in json::members(value) {
        known.insert(status(at, member.name)?, Moves::default());
        if known.len() > AGENT_STATES_MAX {
            let why = format!("at most {AGENT_STATES_MAX} statuses");
            return Err(invalid_field(at.to_owned(), why));
        }
    }
    let mut states = AgentStates::new();
    for member in json::members(value) {
        let moves = moves(&child(at, member.name), member.value, &known)?;
        states.insert(json::decode(member.name).into_owned(), moves);
    }
    Ok(states)
}

/// Parses the name of a status that a session adds.
fn status(parent: &str, literal: &str) -> Result<String, Refusal> {
    let at = child(parent, literal);
    let name = text_of(literal, &at)?;
    if name.is_empty() || name.contains(char::is_control) {
        return Err(invalid_field(at, "a status must not be empty or have control characters"));
    }
    if Status::BUILT_IN.contains(&name.as_str()) {
        return Err(invalid_field(at, "this status is built in, with its own moves"));
    }
    Ok(name)
}

fn moves(at: &str, value: &str, known: &AgentStates) -> Result<Moves, Refusal> {
    let MovesInput { from, to } = part(at, value)?;
    let from = statuses(&format!("{at}/from"), from, known)?;
    Ok(Moves { from, to: statuses(&format!("{at}/to"), to, known)? })
}

/// Returns statuses, all known, without duplicates.
fn statuses(at: &str, mut names: Vec<String>, known: &AgentStates) -> Result<Vec<String>, Refusal> {
    if let Some(index) = names.iter().position(|name| !is_known(known, name)) {
        let why = "this status is neither built in nor one of 'agent_states'";
        return Err(invalid_field(format!("{at}/{index}"), why));
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

#[cfg(test)]
mod tests;
