//! `blackboard openapi`

use std::io::{self, Write};

use clap::Args;

use super::Failure;
use crate::http::openapi_yaml;

/// Print the OpenAPI document as YAML
#[derive(Args, Debug)]
pub(super) struct Openapi {}

impl Openapi {
    pub(super) fn run(self) -> Result<(), Failure> {
        let yaml = openapi_yaml().map_err(Failure::failed)?;
        match io::stdout().write_all(yaml.as_bytes()) {
            // Whoever read it has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(Failure::failed),
        }
    }
}
