//! The command line as a whole: its flags, its help, the examples in it.

use clap::{CommandFactory, Subcommand};

use super::*;

/// The maximum length of the first line of a command's help, so that a list of commands fits a terminal.
const ABOUT_MAX: usize = 80;

/// Every command with those below it.
fn commands() -> Vec<clap::Command> {
    fn collect(command: &clap::Command, all: &mut Vec<clap::Command>) {
        for nested in command.get_subcommands().filter(|nested| nested.get_name() != "help") {
            all.push(nested.clone());
            collect(nested, all);
        }
    }
    let mut top = Cli::command();
    top.build();
    let mut all = Vec::new();
    collect(&top, &mut all);
    all
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// The flags of commands on a server that hold for all calls; the others say what one call does.
const OF_ALL_CALLS: [&str; 7] = ["url", "token-file", "agent", "ca", "config", "format", "color"];

#[test]
fn every_flag_is_an_environment_variable_too() {
    let mut top = Cli::command();
    top.build();
    let remote = Remote::augment_subcommands(clap::Command::new("remote"));
    let is_remote = |name: &str| remote.find_subcommand(name).is_some();
    for command in top.get_subcommands() {
        let all = [command].into_iter().chain(command.get_subcommands());
        for arg in all.flat_map(clap::Command::get_arguments) {
            // A confirmation is given for one call, not for all.
            let own = |flag: &&str| !["help", "version", "yes"].contains(flag);
            let Some(flag) = arg.get_long().filter(own) else { continue };
            let Some(env) = arg.get_env().and_then(|env| env.to_str()) else {
                let of_one_call = !OF_ALL_CALLS.contains(&flag) || command.get_name() == "prompt";
                assert!(is_remote(command.get_name()) && of_one_call, "--{flag} has none");
                continue;
            };
            let name = flag.replace('-', "_").to_uppercase();
            assert!(env.starts_with("BLACKBOARD_") && env.ends_with(&name));
        }
    }
}

#[test]
fn every_command_and_argument_has_help_that_fits() {
    for command in commands() {
        let name = command.get_display_name().unwrap_or_default().to_owned();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let length = about.chars().count();
        assert!((1..=ABOUT_MAX).contains(&length), "{name}: {length} characters: {about}");
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{name} {}", arg.get_id());
        }
    }
}

/// The words of an example; single quotes hold a word together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// Without the server's commands there are fewer.
const EXAMPLES_MIN: usize = if cfg!(unix) { 40 } else { 30 };

#[test]
fn the_examples_are_valid() {
    let mut count = 0;
    for command in commands() {
        let name = command.get_display_name().unwrap_or_default().replace('-', " ");
        let Some(text) = command.get_after_help().map(ToString::to_string) else { continue };
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("Examples:"), "{name}");
        let mut is_own = false;
        for line in lines {
            let line = line.strip_prefix("  ").unwrap_or_else(|| panic!("{name}: {line:?}"));
            is_own |= line.starts_with(&name);
            let line =
                line.split([">", "|"].map(|end| end.chars().next().unwrap())).next().unwrap();
            let parsed = Cli::try_parse_from(words(line.trim()));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            count += 1;
        }
        assert!(is_own, "{name} is in none of its examples");
    }
    assert!(count >= EXAMPLES_MIN, "{count} examples");
}
