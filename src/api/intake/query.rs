//! Queries: structs whose parameters stand in one place with their forms and descriptions.
//!
//! The query of a route is read by its declaration, and its parameters in the OpenAPI document come from it.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::openapi::{Ref, RefOr, Required};

use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::api::schema::shapes::{self, LABEL, TRACE};
use crate::api::schema::{checkpoint_name, name, pattern, unsigned};
use crate::board::{AgentName, CheckpointName, Order, Revision, SessionName, Timestamp, TraceId};
use crate::service::At;

/// The form of a parameter: how its text is read, and its schema.
pub(crate) trait Form {
    /// The type of its value.
    type Value;

    /// True for a list, which is split at commas. Repeated parameters, the other style of clients, are read as well.
    const IS_LIST: bool = false;

    /// What is said where it is missing.
    const NEEDED: &'static str = "is needed";

    /// Takes the parameter.
    fn take(params: &mut Params, name: &'static str) -> Result<Option<Self::Value>, Refusal>;

    /// Returns its schema.
    fn schema() -> RefOr<Schema>;
}

/// Takes a parameter that must be there.
pub(crate) fn needed<F: Form>(
    params: &mut Params,
    name: &'static str,
) -> Result<F::Value, Refusal> {
    F::take(params, name)?.ok_or_else(|| invalid(name, F::NEEDED))
}

/// A whole number within bounds.
pub(crate) struct Whole<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Form for Whole<MIN, MAX> {
    type Value = u64;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<u64>, Refusal> {
        params.number(name, MIN..=MAX)
    }

    fn schema() -> RefOr<Schema> {
        let bound = |bound| usize::try_from(bound).unwrap_or(usize::MAX);
        unsigned(bound(MIN), bound(MAX)).into()
    }
}

/// A count within bounds, which saturates where memory ends.
pub(crate) struct Count<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Form for Count<MIN, MAX> {
    type Value = usize;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<usize>, Refusal> {
        params.count(name, MIN, MAX)
    }

    fn schema() -> RefOr<Schema> {
        Whole::<MIN, MAX>::schema()
    }
}

/// A revision, whether there is such a one or not.
pub(crate) struct AnyRevision;

impl Form for AnyRevision {
    type Value = Revision;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<Revision>, Refusal> {
        Ok(params.number(name, 0..=u64::MAX)?.map(Revision))
    }

    fn schema() -> RefOr<Schema> {
        unsigned(0, usize::MAX).into()
    }
}

/// Any text.
pub(crate) struct Text;

impl Form for Text {
    type Value = String;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<String>, Refusal> {
        params.text(name)
    }

    fn schema() -> RefOr<Schema> {
        shapes::text().into()
    }
}

/// The order of a page.
pub(crate) struct OrderOfPage;

impl Form for OrderOfPage {
    type Value = Order;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<Order>, Refusal> {
        params.choice(name, &[("asc", Order::Ascending), ("desc", Order::Descending)])
    }

    fn schema() -> RefOr<Schema> {
        Ref::from_schema_name("OrderName").into()
    }
}

/// Labels that a session has, each as `name:value`.
pub(crate) struct Labels;

impl Form for Labels {
    type Value = Vec<(String, String)>;

    const IS_LIST: bool = true;

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

    fn schema() -> RefOr<Schema> {
        pattern(LABEL).into()
    }
}

/// A value that its type parses.
pub(crate) struct Of<T>(PhantomData<T>);

/// A type whose texts have a schema.
pub(crate) trait Shaped: FromStr<Err: Display> {
    /// What is said where it is missing.
    const NEEDED: &'static str = "is needed";

    /// Returns the schema.
    fn schema() -> RefOr<Schema>;
}

impl<T: Shaped> Form for Of<T> {
    type Value = T;

    const NEEDED: &'static str = T::NEEDED;

    fn take(params: &mut Params, name: &'static str) -> Result<Option<T>, Refusal> {
        params.parsed(name)
    }

    fn schema() -> RefOr<Schema> {
        T::schema()
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
    const NEEDED: &'static str = "is needed: a revision or a checkpoint";

    fn schema() -> RefOr<Schema> {
        name().into()
    }
}

impl Shaped for Timestamp {
    fn schema() -> RefOr<Schema> {
        shapes::moment().into()
    }
}

impl Shaped for TraceId {
    fn schema() -> RefOr<Schema> {
        pattern(TRACE).into()
    }
}

/// Returns a parameter of the document.
pub(crate) fn parameter<F: Form>(name: &str, about: &[&str], is_needed: bool) -> Parameter {
    let about: Vec<&str> = about.iter().map(|line| line.trim()).collect();
    let begun = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .description(Some(about.join(" ")))
        .required(if is_needed { Required::True } else { Required::False });
    if F::IS_LIST {
        let items = ArrayBuilder::new().items(F::schema()).min_items(Some(1)).build();
        return begun
            .schema(Some(Schema::Array(items)))
            .style(Some(ParameterStyle::Form))
            .explode(Some(false))
            .build();
    }
    begun.schema(Some(F::schema())).build()
}

/// Declares queries: for each parameter its form, and `needed` or its default.
macro_rules! queries {
    (@value $form:ty) => { Option<<$form as $crate::api::intake::query::Form>::Value> };
    (@value $form:ty = $default:expr) => { <$form as $crate::api::intake::query::Form>::Value };
    (@value $form:ty as needed) => { <$form as $crate::api::intake::query::Form>::Value };
    (@take $params:ident $name:expr, $form:ty) => {
        <$form as $crate::api::intake::query::Form>::take($params, $name)?
    };
    (@take $params:ident $name:expr, $form:ty = $default:expr) => {
        <$form as $crate::api::intake::query::Form>::take($params, $name)?.unwrap_or($default)
    };
    (@take $params:ident $name:expr, $form:ty as needed) => {
        $crate::api::intake::query::needed::<$form>($params, $name)?
    };
    (@is_needed) => { false };
    (@is_needed needed) => { true };
    ($(
        $(#[doc = $about:literal])*
        $query:ident {
            $($(#[doc = $told:literal])*
            $name:ident: $form:ty $(as $needed:ident)? $(= $default:expr)?,)*
        }
    )+) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        pub(crate) struct $query {
            $(
                $(#[doc = $told])*
                pub(crate) $name: $crate::api::intake::query::queries!(
                    @value $form $(as $needed)? $(= $default)?
                ),
            )*
        }

        impl $query {
            /// Takes the parameters.
            pub(crate) fn take(
                params: &mut $crate::api::params::Params,
            ) -> Result<Self, $crate::api::refusal::Refusal> {
                Ok(Self {
                    $($name: $crate::api::intake::query::queries!(
                        @take params stringify!($name), $form $(as $needed)? $(= $default)?
                    )),*
                })
            }
        }

        impl ::utoipa::IntoParams for $query {
            fn into_params(
                _: impl Fn() -> Option<::utoipa::openapi::path::ParameterIn>,
            ) -> Vec<::utoipa::openapi::path::Parameter> {
                vec![$($crate::api::intake::query::parameter::<$form>(
                    stringify!($name),
                    &[$($told),*],
                    $crate::api::intake::query::queries!(@is_needed $($needed)?),
                )),*]
            }
        }
    )+};
}

pub(crate) use queries;

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};
    use utoipa::IntoParams as _;

    use super::*;
    use crate::board::Code;

    queries! {
        /// A sample.
        Sample {
            /// How many;
            /// ten by default
            limit: Count<1, 100> = 10,
            /// Where it begins
            from: Of<At> as needed,
            /// With these labels
            label: Labels = Vec::new(),
        }
    }

    #[test]
    fn a_query_is_read_by_its_declaration() {
        let taken = |query: &str| Sample::take(&mut Params::parse(query).unwrap());
        let Sample { limit, from, label } = taken("from=7&label=a:b").unwrap();
        assert_eq!((limit, from), (10, At::Revision(Revision(7))));
        assert_eq!(label, [("a".to_owned(), "b".to_owned())]);
        for (query, why) in [
            ("limit=5", "'from' is needed: a revision or a checkpoint"),
            ("from=7&limit=101", "'limit' must be a whole number from 1 to 100"),
            ("from=7&label=a", "'label' must be name:value"),
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
    }
}
