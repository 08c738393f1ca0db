//! Kinds of members that several inputs have.

use std::marker::PhantomData;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};

use super::fields::{
    answer_member, fence_member, flag, names, number, result_member, string, ttl_member, value_of,
};
use super::input::{Kind, kinds, named};
use super::tasks::{
    attempts_member, priority_member, priority_schema, retry_member, seqs, wanted_members,
    when_member,
};
use crate::refusal::{Refusal, array_required, invalid_field};
use crate::schema::shapes::{RETRY_IN, WHEN, boolean, text};
use crate::schema::{TtlText, from, pattern};
use blackboard_board::json::DEPTH_MAX;
use blackboard_board::{
    AFTER_MAX, ATTEMPTS_MAX, Json, Priority, Revision, Seq, Ttl, WANTED_MAX, Wanted, When, json,
};

/// The maximum number of answers that a form offers for a question.
const OPTIONS_MAX: usize = 100;

kinds! {
    /// A time to live.
    Lifetime: Ttl = ttl_member, named::<TtlText>(&[]), naming TtlText;
    /// The fence of a claim.
    FenceOfClaim: Revision = fence_member, from(1);
    /// Any JSON of at most 1 MiB.
    AnyValue: Json = result_member, any();
    /// The members that a request must have.
    WantedMembers: Wanted = wanted_members, wanted();
    /// The answer to a question.
    AnswerText: String = answer_member, ObjectBuilder::from(pattern("\\S")).min_length(Some(1));
    /// The answer to a question, in a transaction.
    AnswerValue: String = answer_member, pattern("\\S");
    /// The value true, and no other.
    OnlyTrue: () = only_true, ObjectBuilder::from(boolean()).enum_values(Some([true]));
    /// True or false.
    Flag: bool = flag, boolean();
    /// Any text.
    AnyText: String = string, text();
    /// Any text, as the JSON that was sent.
    TextAsSent: Json = text_as_sent, text();
    /// A number to add.
    Amount: Json = number, formatted(Type::Number, KnownFormat::Double);
    /// A value of the state.
    StateJson: Sent = Sent::take, any();
    /// Elements of an array in the state.
    Elements: Sent = Sent::array, ArrayBuilder::new().items(any());
    /// An item of a log.
    ItemJson: Sent = Sent::take, any_object();
    /// The requests that must be done before one.
    After: Vec<Seq> = seqs, ArrayBuilder::new().items(from(1)).max_items(Some(AFTER_MAX));
    /// The priority of a request.
    PriorityNumber: Priority = priority_member, priority_schema();
    /// A time, or a duration that counts from now.
    TimeOrDuration: When = when_member, pattern(WHEN);
    /// The time until the next attempt.
    RetryIn: Ttl = retry_member, pattern(RETRY_IN);
    /// The answers that a form offers for a question.
    Options: Vec<String> = |at, value| names(at, value, OPTIONS_MAX), ArrayBuilder::new()
        .items(text())
        .max_items(Some(OPTIONS_MAX));
    /// The number of claims of a request that may end without success.
    Attempts: u32 = attempts_member, formatted(Type::Integer, KnownFormat::Int32)
        .minimum(Some(1))
        .maximum(Some(ATTEMPTS_MAX));
}

fn any() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

/// The schema of any JSON object.
pub(crate) fn any_object() -> ObjectBuilder {
    let object = ObjectBuilder::new().schema_type(Type::Object);
    object.property_names(Some(text())).additional_properties(Some(any()))
}

fn formatted(kind: Type, format: KnownFormat) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind).format(Some(SchemaFormat::KnownFormat(format)))
}

fn wanted() -> ObjectBuilder {
    let told = format!(
        "The members that the request's item must have, at most {WANTED_MAX}, compared by value: numbers by value, members \
         in any order."
    );
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(told))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .max_properties(Some(WANTED_MAX))
}

fn only_true(at: &str, value: &str) -> Result<(), Refusal> {
    if value == "true" { Ok(()) } else { Err(invalid_field(at.to_owned(), "expected true")) }
}

fn text_as_sent(at: &str, value: &str) -> Result<Json, Refusal> {
    string(at, value)?;
    value_of(value, DEPTH_MAX, at)
}

/// JSON as it was sent, and its pointer. What is allowed depends on the place that it is for.
#[derive(Clone, Debug)]
pub struct Sent {
    pub(crate) at: String,
    pub(crate) text: String,
}

impl Sent {
    fn take(at: &str, value: &str) -> Result<Self, Refusal> {
        Ok(Self { at: at.to_owned(), text: value.to_owned() })
    }

    fn array(at: &str, value: &str) -> Result<Self, Refusal> {
        let found = json::kind(value);
        if found == json::Kind::Array {
            return Self::take(at, value);
        }
        Err(array_required(at.to_owned(), found))
    }

    /// Reads the elements of an array, each of at most this depth.
    pub(crate) fn elements(&self, levels_max: usize) -> Result<Vec<Json>, Refusal> {
        let indexed = json::elements(&self.text).enumerate();
        let read = |(i, element)| value_of(element, levels_max, &format!("{}/{i}", self.at));
        indexed.map(read).collect()
    }
}

/// An array of at most so many elements of one kind.
pub struct Parts<K, const MAX: usize>(PhantomData<K>);

impl<K: Kind, const MAX: usize> Kind for Parts<K, MAX> {
    type Value = Vec<K::Value>;

    fn read(at: &str, value: &str) -> Result<Vec<K::Value>, Refusal> {
        if json::kind(value) != json::Kind::Array {
            return Err(invalid_field(at.to_owned(), "expected an array"));
        }
        if json::elements(value).nth(MAX).is_some() {
            let why = format!("at most {MAX} elements are allowed");
            return Err(invalid_field(at.to_owned(), why));
        }
        let indexed = json::elements(value).enumerate();
        indexed.map(|(index, element)| K::read(&format!("{at}/{index}"), element)).collect()
    }

    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(K::schema()).max_items(Some(MAX)).into()
    }

    fn named(named: &mut Vec<(String, RefOr<Schema>)>) {
        K::named(named);
    }
}
