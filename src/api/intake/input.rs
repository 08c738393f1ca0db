//! Inputs of operations: structs whose members stand in one place with their kinds and descriptions.
//!
//! A body, a tool's arguments and a part of a transaction are read by the same declaration, and the OpenAPI document's schema
//! comes from it.

use std::borrow::Cow;

use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, schema::AdditionalProperties};

use super::fields::members;
use crate::api::refusal::{Refusal, invalid_field, unknown_field};

/// Where the members of an input come from.
pub(crate) trait Source {
    /// Takes a member as JSON text, with its pointer; `None` if it was not sent.
    fn member(&mut self, name: &'static str) -> Option<(String, Cow<'_, str>)>;

    /// Refuses an input without a member that it must have.
    fn lacks(&self, name: &str) -> Refusal;
}

/// The input of an operation.
pub(crate) trait Input: Sized {
    /// The names of its members.
    const NAMES: &'static [&'static str];

    /// True if it has one of them, once.
    const IS_ONE_OF: bool = false;

    /// Takes the members from their source.
    fn take(source: &mut impl Source) -> Result<Self, Refusal>;
}

/// The kind of a member: how it is read, and its schema.
pub(crate) trait Kind {
    /// The type of its value.
    type Value;

    /// Reads the member at this pointer.
    fn read(at: &str, value: &str) -> Result<Self::Value, Refusal>;

    /// Returns its schema.
    fn schema() -> RefOr<Schema>;

    /// Adds the named schemas that its schema refers to.
    fn named(_: &mut Vec<(String, RefOr<Schema>)>) {}
}

/// Takes a member of this kind, if it was sent.
pub(crate) fn optional<K: Kind>(
    source: &mut impl Source,
    name: &'static str,
) -> Result<Option<K::Value>, Refusal> {
    source.member(name).map(|(at, value)| K::read(&at, &value)).transpose()
}

/// Takes a member of this kind, which must be there.
pub(crate) fn needed<K: Kind>(
    source: &mut impl Source,
    name: &'static str,
) -> Result<K::Value, Refusal> {
    optional::<K>(source, name)?.ok_or_else(|| source.lacks(name))
}

/// Reads a body that has the members of this input and no others.
pub(crate) fn body<I: Input>(text: &str) -> Result<I, Refusal> {
    let mut members = Members::of("", text)?;
    let known = |pointer: &str| I::NAMES.iter().any(|name| pointer.strip_prefix('/') == Some(name));
    if let Some((pointer, _)) = members.left.iter().find(|(pointer, _)| !known(pointer)) {
        return Err(unknown_field(pointer.clone(), I::NAMES));
    }
    if I::IS_ONE_OF
        && let Some((pointer, _)) = members.left.get(1)
    {
        let why = format!("send either '{}', not both", I::NAMES.join("' or '"));
        return Err(invalid_field(pointer.clone(), why));
    }
    I::take(&mut members)
}

/// The members of an object, taken by name. A member left over is refused.
pub(crate) struct Members<'a> {
    pointer: &'a str,
    left: Vec<(String, &'a str)>,
    /// The names that were looked for.
    known: Vec<&'static str>,
}

impl<'a> Members<'a> {
    /// Reads the object at this pointer.
    pub(crate) fn of(pointer: &'a str, text: &'a str) -> Result<Self, Refusal> {
        Ok(Self { pointer, left: members(pointer, text)?, known: Vec::new() })
    }

    /// Takes a member with its pointer; the last of repeated ones, as in Python.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<(String, &'a str)> {
        self.known.push(name);
        let pointer = format!("{}/{name}", self.pointer);
        let found = self.left.iter().rfind(|(known, _)| *known == pointer).map(|(_, value)| *value);
        self.left.retain(|(known, _)| *known != pointer);
        found.map(|value| (pointer, value))
    }

    /// Takes a member that must be there.
    pub(crate) fn need(&mut self, name: &'static str) -> Result<(String, &'a str), Refusal> {
        self.take(name).ok_or_else(|| self.lacks(name))
    }

    /// Refuses an object without any of the members that determine its kind.
    pub(crate) fn missing(self, needed: &str) -> Refusal {
        match self.left.into_iter().next() {
            Some((unknown, _)) => unknown_field(unknown, &self.known),
            None => invalid_field(self.pointer.to_owned(), format!("expected {needed}")),
        }
    }

    /// Returns what was read, if no member is left.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Refusal> {
        match self.left.into_iter().next() {
            Some((pointer, _)) => Err(unknown_field(pointer, &self.known)),
            None => Ok(read),
        }
    }
}

impl Source for Members<'_> {
    fn member(&mut self, name: &'static str) -> Option<(String, Cow<'_, str>)> {
        self.take(name).map(|(at, value)| (at, Cow::Borrowed(value)))
    }

    fn lacks(&self, name: &str) -> Refusal {
        invalid_field(self.pointer.to_owned(), format!("expected the member '{name}'"))
    }
}

/// A member in the schema of its object.
pub(crate) struct Told<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: RefOr<Schema>,
    /// The lines of its description.
    pub(crate) about: &'a [&'a str],
    pub(crate) is_needed: bool,
}

/// Returns the schema of an object that has these members at most.
pub(crate) fn object(about: &[&str], members: Vec<Told<'_>>) -> ObjectBuilder {
    let begun = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(described(about))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    let add = |object: ObjectBuilder, told: Told<'_>| {
        let Told { name, mut schema, about, is_needed } = told;
        match (described(about), &mut schema) {
            (Some(about), RefOr::Ref(named)) => named.description = about,
            (Some(about), RefOr::T(Schema::Object(member))) => member.description = Some(about),
            (Some(about), RefOr::T(Schema::OneOf(any))) => any.description = Some(about),
            (Some(_) | None, _) => {}
        }
        let object = object.property(name, schema);
        if is_needed { object.required(name) } else { object }
    };
    members.into_iter().fold(begun, add)
}

/// Returns the schema of an object that has one of its members, and no second.
pub(crate) fn one_of(object: ObjectBuilder) -> ObjectBuilder {
    object.min_properties(Some(1)).max_properties(Some(1))
}

fn described(lines: &[&str]) -> Option<String> {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Declares inputs: the name in the OpenAPI document, and for each member its name there, its kind, and `needed` or its default.
macro_rules! inputs {
    (@value $kind:ty) => { Option<<$kind as $crate::api::intake::input::Kind>::Value> };
    (@value $kind:ty = $default:expr) => { <$kind as $crate::api::intake::input::Kind>::Value };
    (@value $kind:ty as needed) => { <$kind as $crate::api::intake::input::Kind>::Value };
    (@take $source:ident $name:literal $kind:ty) => {
        $crate::api::intake::input::optional::<$kind>($source, $name)?
    };
    (@take $source:ident $name:literal $kind:ty = $default:expr) => {
        $crate::api::intake::input::optional::<$kind>($source, $name)?.unwrap_or($default)
    };
    (@take $source:ident $name:literal $kind:ty as needed) => {
        $crate::api::intake::input::needed::<$kind>($source, $name)?
    };
    (@is_one_of one_of) => { true };
    (@is_needed) => { false };
    (@is_needed needed) => { true };
    ($(
        $(#[doc = $about:literal])*
        $input:ident as $named:literal $($one_of:ident)? {
            $($(#[doc = $told:literal])*
            $member:ident $name:literal: $kind:ty $(as $needed:ident)? $(= $default:expr)?,)*
        }
    )+) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        pub(crate) struct $input {
            $(
                $(#[doc = $told])*
                pub(crate) $member: $crate::api::intake::input::inputs!(
                    @value $kind $(= $default)? $(as $needed)?
                ),
            )*
        }

        impl $crate::api::intake::input::Input for $input {
            const NAMES: &'static [&'static str] = &[$($name),*];
            $(const IS_ONE_OF: bool = $crate::api::intake::input::inputs!(@is_one_of $one_of);)?

            fn take(
                source: &mut impl $crate::api::intake::input::Source,
            ) -> Result<Self, $crate::api::refusal::Refusal> {
                Ok(Self {
                    $($member: $crate::api::intake::input::inputs!(
                        @take source $name $kind $(= $default)? $(as $needed)?
                    )),*
                })
            }
        }

        impl ::utoipa::ToSchema for $input {
            fn name() -> ::std::borrow::Cow<'static, str> {
                $named.into()
            }

            fn schemas(
                named: &mut Vec<(String, ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema>)>,
            ) {
                $(<$kind as $crate::api::intake::input::Kind>::named(named);)*
            }
        }

        impl ::utoipa::PartialSchema for $input {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                let object = $crate::api::intake::input::object(&[$($about),*], vec![$(
                    $crate::api::intake::input::Told {
                        name: $name,
                        schema: <$kind as $crate::api::intake::input::Kind>::schema(),
                        about: &[$($told),*],
                        is_needed: $crate::api::intake::input::inputs!(@is_needed $($needed)?),
                    }
                ),*]);
                $(let object = $crate::api::intake::input::$one_of(object);)?
                object.into()
            }
        }
    )+};
}

pub(crate) use inputs;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::intake::kinds::{FenceOfClaim, Lifetime};
    use crate::board::{Code, Revision, Ttl};

    inputs! {
        /// A sample.
        Sample as "SampleBody" {
            /// How long.
            ttl "ttl": Lifetime = Ttl::MINUTE,
            /// Which.
            fence "fence": FenceOfClaim as needed,
        }
    }

    #[test]
    fn an_input_has_its_members_and_no_others() {
        let Sample { ttl, fence } = body(r#"{"fence": 1, "fence": 2}"#).unwrap();
        assert_eq!((ttl, fence), (Ttl::MINUTE, Revision(2)), "the last of repeated ones counts");
        for (text, code, why) in [
            ("{}", Code::InvalidField, "expected the member 'fence'"),
            (r#"{"fence": 0}"#, Code::InvalidField, "/fence: expected the fence of a claim"),
            (r#"{"fence": 1, "ttl": null}"#, Code::InvalidField, "/ttl: "),
            (r#"{"fence": 0, "tll": "1s"}"#, Code::UnknownField, "/tll: "),
            ("[]", Code::InvalidField, "expected an object, found an array"),
        ] {
            let refused = body::<Sample>(text).unwrap_err();
            assert_eq!(refused.code(), code, "{text}");
            assert!(refused.detail().contains(why), "{text}: {}", refused.detail());
        }
    }

    #[test]
    fn the_schema_is_that_of_the_declaration() {
        let schema = serde_json::to_value(<Sample as utoipa::PartialSchema>::schema()).unwrap();
        assert_eq!(schema["description"], "A sample.");
        assert_eq!(schema["required"], serde_json::json!(["fence"]));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["ttl"]["description"], "How long.");
        assert_eq!(schema["properties"]["fence"]["minimum"], 1);
    }
}
