//! `LinuxAgent`, of one tier: shell commands until the request is done.

use crate::agents::plain;
use crate::registry::Kind;
use crate::strategy::{ACT, DECIDE, READ_BOARD, REMEMBER, Registered};

const INSTRUCTIONS: &str = "You work on a Linux device by its tools. Answer with one JSON object: \
    thought, status (CONTINUE, FINISH, FAIL, PENDING or CONFIRM with a question), commands \
    (tool_name, parameters), result.";

/// Makes the kind. It observes by its commands, so nothing of the device is collected before.
pub fn kind() -> Registered<Kind> {
    plain(INSTRUCTIONS, &[READ_BOARD, DECIDE, ACT, REMEMBER])
}
