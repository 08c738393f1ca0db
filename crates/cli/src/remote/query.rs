//! Addresses with a query.

use std::fmt::{Display, Write as _};

use blackboard_address::segment;

/// An address to which parameters are added.
#[derive(Clone, Debug)]
pub(super) struct Query {
    address: String,
    separator: char,
}

impl Query {
    pub(super) const fn of(address: String) -> Self {
        Self { address, separator: '?' }
    }

    /// Adds a parameter that is given.
    pub(super) fn with(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            let value = segment(&value.to_string());
            // Writing to a String does not fail.
            write!(self.address, "{}{name}={value}", self.separator).ok();
            self.separator = '&';
        }
        self
    }

    /// Adds a parameter that is a list, with names that may contain commas.
    pub(super) fn list(self, name: &str, values: &[String]) -> Self {
        let list = serde_json::Value::from(values).to_string();
        self.with(name, (!values.is_empty()).then_some(list))
    }

    pub(super) fn address(self) -> String {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded_and_absent_ones_left_out() {
        let query = Query::of("/v1/x".to_owned()).with("a", None::<u64>);
        assert_eq!(query.clone().address(), "/v1/x");
        let names = ["é,".to_owned(), "b".to_owned()];
        let query = query.with("q", Some("a b&c")).with("n", Some(3)).list("on", &names);
        let list = "%5B%22%C3%A9%2C%22%2C%22b%22%5D";
        assert_eq!(query.address(), format!("/v1/x?q=a%20b%26c&n=3&on={list}"));
    }
}
