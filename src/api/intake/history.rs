//! Names and points of a history in a body.

use std::fmt::Display;
use std::str::FromStr;

use super::fields::text_of;
use crate::api::refusal::{Refusal, invalid_field};
use crate::board::json::Kind;
use crate::board::{Revision, json};
use crate::service::At;

/// Parses a name in a body.
pub(crate) fn name_member<T>(pointer: &str, value: &str) -> Result<T, Refusal>
where
    T: FromStr<Err: Display>,
{
    if json::kind(value) != Kind::String {
        return Err(invalid_field(pointer.to_owned(), "expected a name, as a string"));
    }
    let name = text_of(value, pointer)?.parse();
    name.map_err(|why: T::Err| invalid_field(pointer.to_owned(), why.to_string()))
}

/// Parses a point in a session's history in a body.
pub(crate) fn at_member(pointer: &str, value: &str) -> Result<At, Refusal> {
    let why = "expected a revision, or a checkpoint's name";
    match json::kind(value) {
        Kind::String => name_member(pointer, value),
        // Any larger number is a revision that does not exist.
        Kind::Number if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            value.parse().map_err(|_| invalid_field(pointer.to_owned(), why))
        }
        Kind::Number => {
            let revision = json::whole(value).map(|whole| At::Revision(Revision(whole)));
            revision.ok_or_else(|| invalid_field(pointer.to_owned(), why))
        }
        Kind::Null | Kind::Bool | Kind::Array | Kind::Object => {
            Err(invalid_field(pointer.to_owned(), why))
        }
    }
}
