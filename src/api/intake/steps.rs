//! The parameter `steps`, a filter by number.

use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::board::json::Exact;

/// The maximum number of steps in a filter.
const STEPS_MAX: usize = 1000;

/// Takes the parameter `steps` as JSON numbers.
pub(crate) fn steps_param(params: &mut Params) -> Result<Option<Vec<Exact>>, Refusal> {
    steps_texts(params)?.as_deref().map(exact_steps).transpose()
}

/// Takes the parameter `steps` as texts.
pub(crate) fn steps_texts(params: &mut Params) -> Result<Option<Vec<String>>, Refusal> {
    let steps = params.list("steps")?;
    if steps.as_ref().is_some_and(|steps| steps.len() > STEPS_MAX) {
        return Err(invalid("steps", format!("takes at most {STEPS_MAX} steps")));
    }
    Ok(steps)
}

/// Parses steps as JSON numbers.
pub(crate) fn exact_steps(steps: &[String]) -> Result<Vec<Exact>, Refusal> {
    let numbers = steps.iter().map(|step| Exact::parse(step)).collect::<Option<Vec<_>>>();
    numbers.ok_or_else(|| invalid("steps", "must be JSON numbers separated by commas"))
}
