//! Queries: structs whose parameters stand in one place with their forms and descriptions.
//!
//! The query of a route is read by its declaration, and its parameters in the OpenAPI document come from it.

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ArrayBuilder, Object, Schema};
use utoipa::openapi::{Ref, RefOr, Required};
use utoipa::{PartialSchema, ToSchema};

use crate::params::{FLAG, LIST_MAX, Params, invalid};
use crate::refusal::Refusal;
use crate::schema::shapes::{self, LABEL, TRACE, TTL, one_of};
use crate::schema::{checkpoint_name, name, pattern, unsigned};
use blackboard_board::{
    AgentName, CheckpointName, ImagesShown, Order, PromptFormat, Revision, SessionName, Timestamp,
    Tokenizer, TraceId, Ttl,
};
use blackboard_service::At;

/// The form of a parameter: how its text is read, and its schema.
pub trait Form {
    /// The type of its value.
    type Value;

    /// Takes the parameter.
    fn take(params: &mut Params, name: &'static str) -> Result<Option<Self::Value>, Refusal>;

    /// Returns its shape.
    fn shape() -> Shape;
}

/// The shape of a parameter in the document.
pub struct Shape {
    schema: RefOr<Schema>,
    /// True for a list, which is split at commas. Repeated parameters, the other style of clients, are read as well.
    is_list: bool,
}

impl<S: Into<RefOr<Schema>>> From<S> for Shape {
    fn from(schema: S) -> Self {
        Self { schema: schema.into(), is_list: false }
    }
}

/// Returns the shape of a list of such items.
pub fn many(items: Object) -> Shape {
    many_to(items, LIST_MAX)
}

/// Returns the shape of a list of at most `max` such items.
pub(crate) fn many_to(items: Object, max: usize) -> Shape {
    let list = ArrayBuilder::new().items(items).min_items(Some(1)).max_items(Some(max));
    Shape { schema: Schema::Array(list.build()).into(), is_list: true }
}

/// A whole number within bounds.
pub struct Whole<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Form for Whole<MIN, MAX> {
    type Value = u64;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<u64>, Refusal> {
        params.number(name, MIN..=MAX)
    }

    fn shape() -> Shape {
        let bound = |bound| usize::try_from(bound).unwrap_or(usize::MAX);
        unsigned(bound(MIN), bound(MAX)).into()
    }
}

/// Any whole number.
pub(crate) type AnyNumber = Whole<0, { u64::MAX }>;

/// A count within bounds, which saturates where memory ends.
pub struct Count<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Form for Count<MIN, MAX> {
    type Value = usize;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<usize>, Refusal> {
        let number = params.number(name, MIN..=MAX)?;
        Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    fn shape() -> Shape {
        Whole::<MIN, MAX>::shape()
    }
}

/// A revision, whether there is such a one or not.
pub struct AnyRevision;

impl Form for AnyRevision {
    type Value = Revision;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<Revision>, Refusal> {
        Ok(AnyNumber::take(params, name)?.map(Revision))
    }

    fn shape() -> Shape {
        AnyNumber::shape()
    }
}

/// Any text.
pub struct Text;

impl Form for Text {
    type Value = String;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<String>, Refusal> {
        params.text(name)
    }

    fn shape() -> Shape {
        shapes::text().into()
    }
}

/// Any texts.
pub struct Texts;

impl Form for Texts {
    type Value = Vec<String>;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<Vec<String>>, Refusal> {
        params.list(name)
    }

    fn shape() -> Shape {
        many(shapes::text())
    }
}

/// True or false.
pub struct Flag;

impl Form for Flag {
    type Value = bool;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<bool>, Refusal> {
        params.choice(name, &FLAG)
    }

    fn shape() -> Shape {
        shapes::boolean().into()
    }
}

/// One of a type's words.
pub struct Choice<T>(PhantomData<T>);

/// A type whose values have words.
pub trait Worded: Copy + 'static {
    /// The words with their values.
    const WORDS: &'static [(&'static str, Self)];

    /// The name and the description of the schema, if the document has it in one place.
    const SCHEMA: Option<(&'static str, &'static str)> = None;

    /// Describes the words.
    fn told() -> Option<String> {
        Self::SCHEMA.map(|(_, told)| told.to_owned())
    }
}

impl<T: Worded> Form for Choice<T> {
    type Value = T;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<T>, Refusal> {
        params.choice(name, T::WORDS)
    }

    fn shape() -> Shape {
        match T::SCHEMA {
            Some((name, _)) => Ref::from_schema_name(name).into(),
            None => <Self as PartialSchema>::schema().into(),
        }
    }
}

impl<T: Worded> PartialSchema for Choice<T> {
    fn schema() -> RefOr<Schema> {
        let mut words = one_of(T::WORDS.iter().map(|(word, _)| *word));
        words.description = T::told();
        words.into()
    }
}

impl<T: Worded> ToSchema for Choice<T> {
    fn name() -> Cow<'static, str> {
        T::SCHEMA.map_or_else(Cow::default, |(name, _)| name.into())
    }
}

/// The order of a page.
pub type OrderName = Choice<Order>;

/// The form of stored images.
pub type ImagesName = Choice<ImagesShown>;

impl Worded for Order {
    const WORDS: &'static [(&'static str, Self)] =
        &[("asc", Self::Ascending), ("desc", Self::Descending)];

    const SCHEMA: Option<(&'static str, &'static str)> =
        Some(("OrderName", "The order: `asc` starts with the oldest, `desc` with the newest."));
}

impl Worded for ImagesShown {
    const WORDS: &'static [(&'static str, Self)] = &Self::NAMED;

    const SCHEMA: Option<(&'static str, &'static str)> =
        Some(("ImagesName", "The form of stored images: data URL, address, or omitted."));
}

impl Worded for PromptFormat {
    const WORDS: &'static [(&'static str, Self)] = &Self::NAMED;

    fn told() -> Option<String> {
        let each = Self::NAMED.map(|(name, format)| format!("`{name}`: {}", format.about()));
        Some(each.join(". "))
    }
}

impl Worded for Tokenizer {
    const WORDS: &'static [(&'static str, Self)] = &Self::NAMED;
}

/// Labels that a session has, each as `name:value`.
pub struct Labels;

impl Form for Labels {
    type Value = Vec<(String, String)>;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<Self::Value>, Refusal> {
        let Some(labels) = params.list(name)? else { return Ok(None) };
        if labels.iter().any(|label| label.contains('\0')) {
            return Err(invalid(name, "must not contain U+0000, which no label has"));
        }
        let pair = |label: &String| {
            let (name, value) = label.split_once(':')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let pairs: Option<Vec<_>> = labels.iter().map(pair).collect();
        let why = "must be name:value, several separated by commas; a value with a comma needs a JSON array";
        pairs.map(Some).ok_or_else(|| invalid(name, why))
    }

    fn shape() -> Shape {
        many(pattern(LABEL))
    }
}

/// A value that its type parses.
pub struct Of<T>(PhantomData<T>);

/// A type whose texts have a schema.
pub trait Shaped: FromStr<Err: Display> {
    /// Returns the schema.
    fn schema() -> RefOr<Schema>;
}

impl<T: Shaped> Form for Of<T> {
    type Value = T;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<T>, Refusal> {
        params.parsed(name)
    }

    fn shape() -> Shape {
        T::schema().into()
    }
}

impl Shaped for SessionName {
    fn schema() -> RefOr<Schema> {
        name().into()
    }
}

impl Shaped for AgentName {
    fn schema() -> RefOr<Schema> {
        name().into()
    }
}

impl Shaped for CheckpointName {
    fn schema() -> RefOr<Schema> {
        checkpoint_name().into()
    }
}

impl Shaped for At {
    fn schema() -> RefOr<Schema> {
        name().into()
    }
}

impl Shaped for Timestamp {
    fn schema() -> RefOr<Schema> {
        shapes::moment().into()
    }
}

impl Shaped for Ttl {
    fn schema() -> RefOr<Schema> {
        pattern(TTL).into()
    }
}

impl Shaped for TraceId {
    fn schema() -> RefOr<Schema> {
        pattern(TRACE).into()
    }
}

/// Returns a parameter of the document.
pub fn parameter(
    name: &str,
    about: &[&str],
    is_needed: bool,
    shape: impl Into<Shape>,
) -> Parameter {
    let about: Vec<&str> = about.iter().map(|line| line.trim()).collect();
    let begun = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .description(Some(about.join(" ")))
        .required(if is_needed { Required::True } else { Required::False });
    let Shape { schema, is_list } = shape.into();
    let begun = begun.schema(Some(schema));
    if is_list {
        return begun.style(Some(ParameterStyle::Form)).explode(Some(false)).build();
    }
    begun.build()
}

/// Declares queries, with their visibility: for each parameter its form, its default or the refusal where it is needed, and after `=>` a shape that
/// says more than the form's. With `via` a function takes the parameter, and the type is its value's.
#[macro_export]
macro_rules! queries {
    (@name r#match) => { "match" };
    (@name $name:ident) => { stringify!($name) };
    (@value $form:ty) => { <$form as $crate::intake::query::Form>::Value };
    (@value [$read:ident] $value:ty) => { $value };
    (@kept $value:ty) => { Option<$value> };
    (@kept $value:ty = $default:expr) => { $value };
    (@kept $value:ty as $missing:literal) => { $value };
    (@take $params:ident $name:expr, $form:ty) => {
        <$form as $crate::intake::query::Form>::take($params, $name)?
    };
    (@take $params:ident $name:expr, [$read:ident] $value:ty) => { $read($params, $name)? };
    (@or $given:expr, $name:expr) => { $given };
    (@or $given:expr, $name:expr, = $default:expr) => { $given.unwrap_or($default) };
    (@or $given:expr, $name:expr, as $missing:literal) => {
        $given.ok_or_else(|| $crate::params::invalid($name, $missing))?
    };
    (@is_needed) => { false };
    (@is_needed $missing:literal) => { true };
    (@shape $form:ty) => { <$form as $crate::intake::query::Form>::shape() };
    (@shape $form:ty => $shape:expr) => { $shape };
    ($(
        $(#[$about:meta])*
        $seen:vis $query:ident {
            $($(#[doc = $told:literal])*
            $name:ident $(via $read:ident)?:
                $form:ty $(as needed($missing:literal))? $(= $default:expr)? $(=> $shape:expr)?,)*
        }
    )+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug)]
        $seen struct $query {
            $(
                $(#[doc = $told])*
                $seen $name: $crate::intake::query::queries!(
                    @kept $crate::intake::query::queries!(@value $([$read])? $form)
                    $(as $missing)? $(= $default)?
                ),
            )*
        }

        impl $query {
            /// Takes the parameters.
            ///
            /// # Errors
            ///
            /// A parameter is missing or malformed.
            $seen fn take(
                params: &mut $crate::params::Params,
            ) -> Result<Self, $crate::refusal::Refusal> {
                Ok(Self {
                    $($name: $crate::intake::query::queries!(
                        @or $crate::intake::query::queries!(
                            @take params $crate::intake::query::queries!(@name $name),
                            $([$read])? $form
                        ),
                        $crate::intake::query::queries!(@name $name)
                        $(, as $missing)? $(, = $default)?
                    )),*
                })
            }
        }

        impl ::utoipa::IntoParams for $query {
            fn into_params(
                _: impl Fn() -> Option<::utoipa::openapi::path::ParameterIn>,
            ) -> Vec<::utoipa::openapi::path::Parameter> {
                vec![$($crate::intake::query::parameter(
                    $crate::intake::query::queries!(@name $name),
                    &[$($told),*],
                    $crate::intake::query::queries!(@is_needed $($missing)?),
                    $crate::intake::query::queries!(@shape $form $(=> $shape)?),
                )),*]
            }
        }
    )+};
}

pub use queries;

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};
    use utoipa::IntoParams as _;

    use super::*;
    use blackboard_board::Code;

    queries! {
        /// A sample.
        pub(crate) Sample {
            /// How many;
            /// ten by default
            limit: Count<1, 100> = 10,
            /// Where it begins
            from: Of<At> as needed("is needed: a revision or a checkpoint"),
            /// With these labels
            label: Labels = Vec::new(),
            /// The order
            order: OrderName,
            /// A letter
            letter via letter: char => pattern("^.$"),
            /// Only these
            keys: Texts = Vec::new() => many(pattern("^k")),
        }
    }

    fn letter(params: &mut Params, name: &'static str) -> Result<Option<char>, Refusal> {
        let Some(text) = params.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| invalid(name, "must be a letter"))
    }

    #[test]
    fn a_query_is_read_by_its_declaration() {
        let taken = |query: &str| Sample::take(&mut Params::parse(query).unwrap());
        let Sample { limit, from, label, order, letter, keys } =
            taken("from=7&label=a:b&order=desc&letter=x").unwrap();
        assert_eq!((limit, from), (10, At::Revision(Revision(7))));
        assert_eq!(label, [("a".to_owned(), "b".to_owned())]);
        assert_eq!((order, letter, keys), (Some(Order::Descending), Some('x'), Vec::new()));
        for (query, why) in [
            ("limit=5", "'from' is needed: a revision or a checkpoint"),
            ("from=7&limit=101", "'limit' must be a whole number from 1 to 100"),
            ("from=7&label=a", "'label' must be name:value"),
            ("from=7&letter=xy", "'letter' must be a letter"),
        ] {
            let refused = taken(query).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidParameter, "{query}");
            assert!(refused.detail().starts_with(why), "{query}: {}", refused.detail());
        }
    }

    #[test]
    fn the_documents_parameters_are_those_of_the_declaration() {
        let parameters = to_value(Sample::into_params(|| None)).unwrap();
        assert_eq!(parameters[0]["description"], "How many; ten by default");
        assert_eq!(parameters[0]["schema"]["maximum"], 100);
        assert_eq!(parameters[1]["required"], true);
        assert_eq!(parameters[2]["schema"]["type"], "array");
        assert_eq!(parameters[2]["explode"], json!(false));
        assert_eq!(parameters[3]["schema"]["$ref"], "#/components/schemas/OrderName");
        assert_eq!(parameters[4]["schema"]["pattern"], "^.$");
        assert_eq!(parameters[5]["schema"]["items"]["pattern"], "^k");
    }
}
