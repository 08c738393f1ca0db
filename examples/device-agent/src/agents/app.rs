//! `AppAgent`, of the lower tier: one application, observed before each decision.

use crate::agents::plain;
use crate::registry::Kind;
use crate::strategy::{ACT, DECIDE, OBSERVE, READ_BOARD, REMEMBER, Registered};

const INSTRUCTIONS: &str = "You work in one application by its tools; the observation is what it \
    shows. Answer with one JSON object: thought, status (CONTINUE, FINISH, FAIL, SCREENSHOT, \
    PENDING or CONFIRM with a question), commands (tool_name, parameters), result.";

/// Makes the kind.
pub fn kind() -> Registered<Kind> {
    let kind = plain(INSTRUCTIONS, &[OBSERVE, READ_BOARD, DECIDE, ACT, REMEMBER])?;
    Ok(Kind { observes: "list_files", ..kind })
}
