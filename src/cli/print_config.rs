//! `blackboard serve --print-config`: the effective settings and their sources.
//!
//! The lines that are not comments form an environment with the same settings, except that secrets are masked.

use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Name endings of settings whose values are secret.
const SECRET_ENDS: [&str; 4] = ["token", "secret", "password", "headers"];

/// Left out: with it in the environment a server would print its settings and exit.
const ITSELF: &str = "print-config";

const STARS: &str = "***";

/// All settings of a command, in the order of its help.
pub(super) fn settings(command: &Command, matches: &ArgMatches) -> String {
    let mut text = String::new();
    for arg in command.get_arguments().filter(|arg| arg.get_long() != Some(ITSELF)) {
        let (Some(flag), Some(name)) = (arg.get_long(), arg.get_env()) else { continue };
        let name = name.to_string_lossy();
        let source = match matches.value_source(arg.get_id().as_str()) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            Some(_) => "default",
            None => {
                // Writing to a string does not fail.
                writeln!(text, "# --{flag} is not set\n#{name}=").ok();
                continue;
            }
        };
        let value = value(arg, matches, flag);
        writeln!(text, "# --{flag}, from {source}\n{name}={}", quoted(&value)).ok();
    }
    text
}

fn value(arg: &Arg, matches: &ArgMatches, flag: &str) -> String {
    if SECRET_ENDS.iter().any(|end| flag.ends_with(end)) && !is_path(arg) && !is_switch(arg) {
        return STARS.to_owned();
    }
    let raw = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    let values: Vec<String> = raw.map(OsStr::to_string_lossy).map(|raw| starred(&raw)).collect();
    values.join(",")
}

/// Returns true if the flag is only on or off.
fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

fn is_path(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "PATH"))
}

/// Stars the user information of a URL.
fn starred(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{STARS}@{host}{path}"),
        None => value.to_owned(),
    }
}

/// Quotes a value for a shell, if needed.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,=@%+".contains(c);
    if value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
