//! The parameter `steps`, a filter by step number.

use crate::params::{Params, invalid};
use crate::refusal::Refusal;
use blackboard_board::json::Exact;

/// Takes steps as JSON numbers.
pub fn steps(params: &mut Params, name: &'static str) -> Result<Option<Vec<Exact>>, Refusal> {
    params.list(name)?.as_deref().map(exact_steps).transpose()
}

/// Parses steps as JSON numbers.
pub(crate) fn exact_steps(steps: &[String]) -> Result<Vec<Exact>, Refusal> {
    let numbers = steps.iter().map(|step| Exact::parse(step)).collect::<Option<Vec<_>>>();
    numbers.ok_or_else(|| invalid("steps", "must be JSON numbers separated by commas"))
}
