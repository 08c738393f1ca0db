//! The address of a PostgreSQL service in a build without PostgreSQL: there is none.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{PostgresError, Store, StoreError};
use blackboard_clock::Clock;

/// The address of a PostgreSQL service, which this build does not have.
#[derive(Clone, Debug)]
pub enum PostgresUrl {}

impl PostgresUrl {
    /// Returns the store at the address, with its clock.
    ///
    /// # Errors
    ///
    /// None, since there is no address.
    pub fn open(&self) -> Result<(Arc<dyn Store>, Clock), StoreError> {
        match *self {}
    }
}

impl FromStr for PostgresUrl {
    type Err = PostgresError;

    fn from_str(_: &str) -> Result<Self, PostgresError> {
        let detail = "this build has no PostgreSQL: build it with the feature postgres, or use a data directory";
        Err(PostgresError::Address(detail.to_owned()))
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
