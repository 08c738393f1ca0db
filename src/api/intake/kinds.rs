//! Kinds of members that several inputs have.

use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::fields::{answer_member, fence_member, result_member, ttl_member};
use super::history::{at_member, name_member};
use super::input::Kind;
use super::query::{Of, Shaped};
use super::tasks::wanted_members;
use crate::api::refusal::{Refusal, invalid_field};
use crate::api::schema::{TtlText, from, point};
use crate::board::{Json, Revision, Ttl, WANTED_MAX, Wanted};
use crate::service::At;

/// A time to live.
pub(crate) struct Lifetime;

impl Kind for Lifetime {
    type Value = Ttl;

    fn read(at: &str, value: &str) -> Result<Ttl, Refusal> {
        ttl_member(at, value)
    }

    fn schema() -> RefOr<Schema> {
        Ref::from_schema_name(TtlText::name()).into()
    }

    fn named(named: &mut Vec<(String, RefOr<Schema>)>) {
        named.push((TtlText::name().into(), TtlText::schema()));
    }
}

/// The fence of a claim.
pub(crate) struct FenceOfClaim;

impl Kind for FenceOfClaim {
    type Value = Revision;

    fn read(at: &str, value: &str) -> Result<Revision, Refusal> {
        fence_member(at, value)
    }

    fn schema() -> RefOr<Schema> {
        from(1).into()
    }
}

/// Any JSON of at most 1 MiB.
pub(crate) struct AnyValue;

impl Kind for AnyValue {
    type Value = Json;

    fn read(at: &str, value: &str) -> Result<Json, Refusal> {
        result_member(at, value)
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// The members that a request must have.
pub(crate) struct WantedMembers;

impl Kind for WantedMembers {
    type Value = Wanted;

    fn read(at: &str, value: &str) -> Result<Wanted, Refusal> {
        wanted_members(at, value)
    }

    fn schema() -> RefOr<Schema> {
        let told = format!(
            "The members that the request's item must have, at most {WANTED_MAX}, compared by value: numbers by value, members \
             in any order."
        );
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(told))
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
            .max_properties(Some(WANTED_MAX))
            .into()
    }
}

/// A name, which its type parses.
impl<T: Shaped> Kind for Of<T> {
    type Value = T;

    fn read(at: &str, value: &str) -> Result<T, Refusal> {
        name_member(at, value)
    }

    fn schema() -> RefOr<Schema> {
        T::schema()
    }
}

/// A point in a session's history.
pub(crate) struct Point;

impl Kind for Point {
    type Value = At;

    fn read(at: &str, value: &str) -> Result<At, Refusal> {
        at_member(at, value)
    }

    fn schema() -> RefOr<Schema> {
        point().into()
    }
}

/// The answer to a question.
pub(crate) struct AnswerText;

impl Kind for AnswerText {
    type Value = String;

    fn read(at: &str, value: &str) -> Result<String, Refusal> {
        answer_member(at, value)
    }

    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.min_length(Some(1)).pattern(Some("\\S")).into()
    }
}

/// The value true, and no other.
pub(crate) struct OnlyTrue;

impl Kind for OnlyTrue {
    type Value = ();

    fn read(at: &str, value: &str) -> Result<(), Refusal> {
        if value == "true" { Ok(()) } else { Err(invalid_field(at.to_owned(), "expected true")) }
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).into()
    }
}
