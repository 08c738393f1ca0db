//! Inputs of operations: structs whose members stand in one place with their kinds and descriptions.
//!
//! A body, a tool's arguments and a part of a transaction are read by the same declaration, and the OpenAPI document's schema
//! comes from it.

use std::borrow::Cow;

use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

use super::fields::members;
use crate::refusal::{Refusal, invalid_field, unknown_field};

/// Where the members of an input come from.
pub trait Source {
    /// Takes a member as JSON text, with its pointer; `None` if it was not sent.
    fn member(&mut self, name: &'static str) -> Option<(String, Cow<'_, str>)>;

    /// Refuses an input without a member that it must have.
    fn lacks(&self, name: &str) -> Refusal;
}

/// The input of an operation.
pub trait Input: Sized {
    /// The names of its members.
    const NAMES: &'static [&'static str];

    /// The names of those that it must have.
    const NEEDED: &'static [&'static str];

    /// True if it has one of them, once.
    const IS_ONE_OF: bool = false;

    /// Takes the members from their source.
    fn take(source: &mut impl Source) -> Result<Self, Refusal>;
}

/// The kind of a member: how it is read, and its schema.
pub trait Kind {
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
pub fn optional<K: Kind>(
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
pub fn body<I: Input>(text: &str) -> Result<I, Refusal> {
    part("", text)
}

/// Reads the part of a body at this pointer, which has the members of this input and no others.
pub(crate) fn part<I: Input>(at: &str, text: &str) -> Result<I, Refusal> {
    let mut members = Members::of(at, text)?;
    members.are_of(I::NAMES)?;
    if I::IS_ONE_OF {
        members.is_one_of(I::NAMES)?;
    }
    I::take(&mut members)
}

/// The number of inputs from which a refusal lists their names without quotes.
const NAMED_EACH_MAX: usize = 4;

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

    /// Returns true if no member is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Refuses a member that has none of these names.
    pub(crate) fn are_of(&self, names: &[&str]) -> Result<(), Refusal> {
        let is_known = |at: &str| {
            let name = at.strip_prefix(self.pointer).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| names.contains(&name))
        };
        match self.left.iter().find(|(at, _)| !is_known(at)) {
            Some((unknown, _)) => Err(unknown_field(unknown.clone(), names)),
            None => Ok(()),
        }
    }

    /// Refuses a second member.
    pub(crate) fn is_one_of(&self, names: &[&str]) -> Result<(), Refusal> {
        let Some((second, _)) = self.left.get(1) else { return Ok(()) };
        let why = format!("send either '{}', not both", names.join("' or '"));
        Err(invalid_field(second.clone(), why))
    }

    /// Returns a member that is not taken yet; the last of repeated ones.
    pub(crate) fn get(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        let pointer = format!("{}/{name}", self.pointer);
        self.left.iter().rfind(|(known, _)| *known == pointer).map(|(_, value)| *value)
    }

    /// Tells inputs apart by the members that each must have: of those that begin with the first one that is here, the first
    /// that is here whole, else the last.
    pub(crate) fn choose(
        &mut self,
        inputs: &[&'static [&'static str]],
    ) -> Option<&'static [&'static str]> {
        let mut firsts = inputs.iter().filter_map(|needed| needed.first());
        let first = firsts.find(|first| self.get(first).is_some())?;
        let begin = |needed: &&&'static [&'static str]| needed.first() == Some(first);
        let whole = inputs
            .iter()
            .filter(begin)
            .find(|needed| needed.iter().all(|name| self.get(name).is_some()));
        whole.or_else(|| inputs.iter().rfind(begin)).copied()
    }

    /// Takes a member with its pointer; the last of repeated ones, as in Python.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<(String, &'a str)> {
        let found = self.get(name);
        let pointer = format!("{}/{name}", self.pointer);
        self.left.retain(|(known, _)| *known != pointer);
        found.map(|value| (pointer, value))
    }

    /// Refuses an object that none of these inputs begins with.
    pub(crate) fn missing(&self, inputs: &[&[&'static str]]) -> Refusal {
        if let Some((unknown, _)) = self.left.first() {
            return unknown_field(unknown.clone(), &self.known);
        }
        let mut firsts: Vec<&str> =
            inputs.iter().filter_map(|needed| needed.first().copied()).collect();
        firsts.dedup();
        let expected = match firsts.split_last() {
            Some((last, firsts)) if firsts.len() < NAMED_EACH_MAX => {
                format!("'{}' or '{last}'", firsts.join("', '"))
            }
            Some(_) | None => format!("one of {}", firsts.join(", ")),
        };
        invalid_field(self.pointer.to_owned(), format!("expected {expected}"))
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
            (Some(about), RefOr::T(Schema::Array(member))) => member.description = Some(about),
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

/// Returns the description that a doc comment is.
pub(crate) fn described(lines: &[&str]) -> Option<String> {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns a reference to a schema by its name.
pub(crate) fn named<T: ToSchema>(about: &[&str]) -> RefOr<Schema> {
    let mut named = Ref::from_schema_name(T::name());
    named.description = described(about).unwrap_or_default();
    named.into()
}

/// Adds a schema under its name, and those that it refers to.
pub(crate) fn name_schema<T: ToSchema>(named: &mut Vec<(String, RefOr<Schema>)>) {
    named.push((T::name().into(), T::schema()));
    T::schemas(named);
}

/// Declares kinds: the type of the value, its reader, its schema, and a type whose schema it refers to by name.
macro_rules! kinds {
    ($(
        $(#[doc = $about:literal])*
        $kind:ident: $value:ty = $read:expr, $schema:expr $(, naming $named:ty)?;
    )+) => {$(
        $(#[doc = $about])*
        pub struct $kind;

        impl $crate::intake::input::Kind for $kind {
            type Value = $value;

            fn read(at: &str, value: &str) -> Result<$value, $crate::refusal::Refusal> {
                // A closure would be called where it stands.
                let read: fn(&str, &str) -> Result<$value, $crate::refusal::Refusal> = $read;
                read(at, value)
            }

            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                $schema.into()
            }

            $(
                fn named(
                    named: &mut Vec<(
                        String,
                        ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema>,
                    )>,
                ) {
                    $crate::intake::input::name_schema::<$named>(named);
                }
            )?
        }
    )+};
}

pub(crate) use kinds;

/// Declares inputs: the name in the OpenAPI document, and for each member its name there, its kind, and `needed` or its default.
macro_rules! inputs {
    (@value $kind:ty) => { Option<<$kind as $crate::intake::input::Kind>::Value> };
    (@value $kind:ty = $default:expr) => { <$kind as $crate::intake::input::Kind>::Value };
    (@value $kind:ty as needed) => { <$kind as $crate::intake::input::Kind>::Value };
    (@take $source:ident $name:literal $kind:ty) => {
        $crate::intake::input::optional::<$kind>($source, $name)?
    };
    (@take $source:ident $name:literal $kind:ty = $default:expr) => {
        $crate::intake::input::optional::<$kind>($source, $name)?.unwrap_or($default)
    };
    (@take $source:ident $name:literal $kind:ty as needed) => {
        $crate::intake::input::needed::<$kind>($source, $name)?
    };
    (@name needed $name:literal) => { $name };
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
        #[allow(
            missing_docs,
            unreachable_pub,
            reason = "a member's kind has its description if it has none; inputs of tests are nobody's"
        )]
        pub struct $input {
            $(
                $(#[doc = $told])*
                pub $member: $crate::intake::input::inputs!(
                    @value $kind $(= $default)? $(as $needed)?
                ),
            )*
        }

        impl $crate::intake::input::Input for $input {
            const NAMES: &'static [&'static str] = &[$($name),*];
            const NEEDED: &'static [&'static str] =
                &[$($($crate::intake::input::inputs!(@name $needed $name),)?)*];
            $(const IS_ONE_OF: bool = $crate::intake::input::inputs!(@is_one_of $one_of);)?

            fn take(
                source: &mut impl $crate::intake::input::Source,
            ) -> Result<Self, $crate::refusal::Refusal> {
                Ok(Self {
                    $($member: $crate::intake::input::inputs!(
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
                $(<$kind as $crate::intake::input::Kind>::named(named);)*
            }
        }

        impl ::utoipa::PartialSchema for $input {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                let object = $crate::intake::input::object(&[$($about),*], vec![$(
                    $crate::intake::input::Told {
                        name: $name,
                        schema: <$kind as $crate::intake::input::Kind>::schema(),
                        about: &[$($told),*],
                        is_needed: $crate::intake::input::inputs!(@is_needed $($needed)?),
                    }
                ),*]);
                $(let object = $crate::intake::input::$one_of(object);)?
                object.into()
            }
        }
    )+};
}

pub(crate) use inputs;

/// Declares unions of inputs: the name in the OpenAPI document, and the inputs, told apart by [`Members::choose`].
macro_rules! unions {
    ($(
        $(#[doc = $about:literal])*
        $union:ident as $named:literal {
            $($(#[doc = $told:literal])* $variant:ident($input:ty),)+
        }
    )+) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        #[allow(
            missing_docs,
            unreachable_pub,
            reason = "an input has its description if its variant has none; unions of tests are nobody's"
        )]
        pub enum $union {
            $($(#[doc = $told])* $variant($input),)+
        }

        impl $union {
            /// The members that each of the inputs must have.
            pub(crate) const INPUTS: &'static [&'static [&'static str]] =
                &[$(<$input as $crate::intake::input::Input>::NEEDED),+];

            /// Takes the members of one of the inputs.
            pub(crate) fn take(
                members: &mut $crate::intake::input::Members<'_>,
            ) -> Result<Self, $crate::refusal::Refusal> {
                use $crate::intake::input::Input as _;

                let chosen = members.choose(Self::INPUTS);
                $(if chosen == Some(<$input>::NEEDED) {
                    return Ok(Self::$variant(<$input>::take(members)?));
                })+
                Err(members.missing(Self::INPUTS))
            }
        }

        impl ::utoipa::ToSchema for $union {
            fn name() -> ::std::borrow::Cow<'static, str> {
                $named.into()
            }

            fn schemas(
                named: &mut Vec<(String, ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema>)>,
            ) {
                $($crate::intake::input::name_schema::<$input>(named);)+
            }
        }

        impl ::utoipa::PartialSchema for $union {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                let any = ::utoipa::openapi::schema::OneOfBuilder::new();
                $(let any = any.item($crate::intake::input::named::<$input>(&[$($told),*]));)+
                any.description($crate::intake::input::described(&[$($about),*])).into()
            }
        }
    )+};
}

pub(crate) use unions;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::kinds::{FenceOfClaim, Lifetime};
    use blackboard_board::{Code, Revision, Ttl};

    inputs! {
        /// A sample.
        Sample as "SampleBody" {
            /// How long.
            ttl "ttl": Lifetime = Ttl::MINUTE,
            /// Which.
            fence "fence": FenceOfClaim as needed,
        }
    }

    inputs! {
        /// By a name.
        ByName as "ByNameBody" {
            kind "kind": Lifetime as needed,
            name "name": Lifetime as needed,
        }

        /// By a fence.
        ByFence as "ByFenceBody" {
            kind "kind": Lifetime as needed,
            fence "fence": FenceOfClaim as needed,
        }

        /// All.
        All as "AllBody" {
            all "all": Lifetime as needed,
        }
    }

    unions! {
        /// One of three.
        Choice as "ChoiceBody" {
            /// The first.
            Name(ByName),
            Fence(ByFence),
            All(All),
        }
    }

    #[test]
    fn an_input_of_a_union_is_told_by_its_members() {
        let taken = |text: &str| {
            let mut members = Members::of("/0", text)?;
            let read = Choice::take(&mut members)?;
            members.finish(read)
        };
        let shown = |text: &str| match taken(text).unwrap() {
            Choice::Name(ByName { kind, name }) => format!("{kind} {name}"),
            Choice::Fence(ByFence { kind, fence }) => format!("{kind} {fence}"),
            Choice::All(All { all }) => all.to_string(),
        };
        assert_eq!(shown(r#"{"name": "1s", "kind": "2s"}"#), "2s 1s");
        assert_eq!(shown(r#"{"fence": 3, "kind": "1s"}"#), "1s 3");
        assert_eq!(shown(r#"{"all": "4s"}"#), "4s");
        for (text, why) in [
            ("{}", "/0: expected 'kind' or 'all'"),
            (r#"{"kind": "1s"}"#, "/0: expected the member 'fence'"),
            (r#"{"al": "1s"}"#, "/0/al: unknown member; did you mean 'all'? Known here: all, kind"),
            (r#"{"all": "1s", "fence": 1}"#, "/0/fence: unknown member; known here: all, kind"),
        ] {
            let refused = taken(text).unwrap_err();
            assert_eq!(refused.detail(), why, "{text}");
        }
    }

    #[test]
    fn the_schema_of_a_union_names_its_inputs() {
        let schema = serde_json::to_value(<Choice as utoipa::PartialSchema>::schema()).unwrap();
        assert_eq!(schema["description"], "One of three.");
        assert_eq!(schema["oneOf"][0]["$ref"], "#/components/schemas/ByNameBody");
        assert_eq!(schema["oneOf"][0]["description"], "The first.");
        let mut named = Vec::new();
        <Choice as ToSchema>::schemas(&mut named);
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"AllBody") && names.contains(&"TtlText"), "{names:?}");
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
