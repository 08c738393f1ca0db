//! The parameter `steps`: a filter by the steps of trajectories and memories.

use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::board::json::Exact;

/// The most steps that one filter names.
const STEPS_MAX: usize = 1000;

/// The parameter `steps`: JSON numbers.
pub(crate) fn steps_param(params: &mut Params) -> Result<Option<Vec<Exact>>, Refusal> {
    steps_texts(params)?.as_deref().map(exact_steps).transpose()
}

/// The same as the texts that they are in.
pub(crate) fn steps_texts(params: &mut Params) -> Result<Option<Vec<String>>, Refusal> {
    let steps = params.list("steps")?;
    if steps.as_ref().is_some_and(|steps| steps.len() > STEPS_MAX) {
        return Err(invalid("steps", format!("names at most {STEPS_MAX} steps")));
    }
    Ok(steps)
}

/// Steps as the numbers that they are.
pub(crate) fn exact_steps(steps: &[String]) -> Result<Vec<Exact>, Refusal> {
    let numbers = steps.iter().map(|step| Exact::parse(step)).collect::<Option<Vec<_>>>();
    numbers.ok_or_else(|| invalid("steps", "must be JSON numbers separated by commas"))
}
