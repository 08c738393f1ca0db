//! Unknown environment variables with our prefix.

use clap::{Command, CommandFactory as _};

use super::Cli;
use crate::cli::{SECRET_VARIABLE, WORK_VARIABLES, note};
use blackboard_suggestion::nearest;

/// The prefix of all variables.
const PREFIX: &str = "BLACKBOARD_";

/// Prefixes of the variables that Kubernetes sets for a service named blackboard.
const OF_KUBERNETES: [&str; 2] = ["BLACKBOARD_SERVICE_", "BLACKBOARD_PORT"];

/// Variables that clients read.
const OF_CLIENTS: [&str; 3] = ["BLACKBOARD_URL", "BLACKBOARD_TOKEN", SECRET_VARIABLE];

/// The maximum number of unknown variables to name.
const NAMED_MAX: usize = 16;

/// The command whose help lists most variables.
const LISTING: &str = if cfg!(unix) { "serve" } else { "mcp" };

/// Prints a note for each unknown variable.
pub(super) fn note_unknown() {
    unknown().iter().for_each(note);
}

/// Returns a sentence for each variable with our prefix that no option of any command reads.
pub(super) fn unknown() -> Vec<String> {
    let given = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut given: Vec<String> = given.filter(|name| name.starts_with(PREFIX)).collect();
    given.sort_unstable();
    let known = known();
    given.retain(|name| !known.contains(name));
    given.retain(|name| !OF_KUBERNETES.iter().any(|prefix| name.starts_with(prefix)));
    given.retain(|name| !OF_CLIENTS.contains(&name.as_str()));
    given.retain(|name| !WORK_VARIABLES.contains(&name.as_str()));
    given.truncate(NAMED_MAX);
    given.iter().map(|name| sentence(name, &known)).collect()
}

fn sentence(name: &str, known: &[String]) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(name, &known) {
        Some(near) => format!("unknown environment variable {name}; did you mean {near}?"),
        None => {
            format!("unknown environment variable {name}; 'blackboard help {LISTING}' lists them")
        }
    }
}

/// Returns the variables of all commands.
fn known() -> Vec<String> {
    let mut top = Cli::command();
    top.build();
    let mut known = Vec::new();
    collect(&top, &mut known);
    known
}

fn collect(command: &Command, known: &mut Vec<String>) {
    let named = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    known.extend(named.map(str::to_owned));
    command.get_subcommands().for_each(|nested| collect(nested, known));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_is_named_with_the_nearest() {
        let known = known();
        let is_known = |name: &str| known.iter().any(|one| one == name);
        assert!(is_known("BLACKBOARD_CONFIG"));
        assert_eq!(is_known("BLACKBOARD_LISTEN"), cfg!(unix));
        assert_eq!(is_known("BLACKBOARD_TOKEN_NAME"), cfg!(unix));
        let sentence = |name| sentence(name, &known);
        assert!(sentence("BLACKBOARD_CONFG").contains("did you mean BLACKBOARD_CONFIG?"));
        assert!(sentence("BLACKBOARD_ELSEWHERE_QUITE").contains(&format!("help {LISTING}'")));
    }
}
