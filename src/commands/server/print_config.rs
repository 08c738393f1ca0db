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
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    fn command() -> Command {
        let arg = |name: &'static str, env: &'static str| Arg::new(name).long(name).env(env);
        Command::new("x").args([
            arg("listen", "X_LISTEN").default_value("127.0.0.1:1"),
            arg("store", "X_STORE"),
            arg("admin-token", "X_ADMIN_TOKEN"),
            arg("secret-file-token", "X_SECRET_FILE_TOKEN").value_name("PATH"),
            arg("otlp-headers", "X_OTLP_HEADERS"),
            arg("insecure", "X_INSECURE").action(ArgAction::SetTrue),
            arg("require-token", "X_REQUIRE_TOKEN").action(ArgAction::SetTrue),
            arg("log", "X_LOG"),
        ])
    }

    fn told(arguments: &[&str]) -> String {
        let command = command();
        let matches = command.clone().get_matches_from([&["x"], arguments].concat());
        settings(&command, &matches)
    }

    #[test]
    fn each_setting_has_its_value_and_its_source() {
        let told = told(&["--log", "warn,x=it's", "--insecure"]);
        assert!(told.starts_with("# --listen, from default\nX_LISTEN=127.0.0.1:1\n"), "{told}");
        assert!(told.contains("# --store is not set\n#X_STORE=\n"), "{told}");
        assert!(told.contains("# --insecure, from flag\nX_INSECURE=true\n"), "{told}");
        assert!(told.contains("# --log, from flag\nX_LOG='warn,x=it'\\''s'\n"), "{told}");
    }

    #[test]
    fn secrets_are_starred_and_paths_to_them_are_not() {
        let store = "postgres://ann:canary@db.example:5432/b?x=1";
        let told = told(&[
            "--store",
            store,
            "--admin-token=canary",
            "--otlp-headers=canary",
            "--secret-file-token=/run/secrets/x",
        ]);
        assert!(!told.contains("canary") && !told.contains("ann"), "{told}");
        assert!(told.contains("X_STORE='postgres://***@db.example:5432/b?x=1'\n"), "{told}");
        assert!(told.contains("X_ADMIN_TOKEN='***'\n") && told.contains("X_OTLP_HEADERS='***'\n"));
        assert!(told.contains("X_SECRET_FILE_TOKEN=/run/secrets/x\n"), "{told}");
        assert!(told.contains("X_REQUIRE_TOKEN=false\n"), "{told}");
        assert_eq!(starred("http://a/b@c"), "http://a/b@c");
    }
}
