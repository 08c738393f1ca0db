//! `blackboard openapi`

use clap::Args;

use crate::cli::{Failure, put};
use crate::http::openapi_yaml;

/// Print the OpenAPI document as YAML
#[derive(Args, Debug)]
pub(in crate::commands) struct Openapi {}

impl Openapi {
    pub(super) fn run(self) -> Result<(), Failure> {
        let yaml = openapi_yaml().map_err(Failure::failed)?;
        put(&yaml).map_err(Failure::failed)
    }
}
