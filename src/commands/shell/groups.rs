//! Groups of the commands in the help of the command line.

use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::{Command, Subcommand as _};

/// The groups, in the order of the help. A command that is in none comes last.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Server", &["serve", "demo", "token", "healthcheck"]),
    ("Data directory", &["backup", "check", "salvage", "export", "import"]),
    (
        "Read a server",
        &[
            "tail",
            "sessions",
            "show",
            "search",
            "prompt",
            "agents",
            "inbox",
            "messages",
            "attention",
            "wait",
            "diff",
        ],
    ),
    (
        "Write to a server",
        &[
            "post",
            "blob",
            "state",
            "ask",
            "answer",
            "send",
            "claim",
            "finish",
            "fail",
            "release",
            "retry",
            "cancel",
            "review",
            "work",
            "pause",
            "resume",
            "checkpoint",
            "fork",
            "restore",
            "delete",
        ],
    ),
    ("Connect other programs", &["mcp", "forward", "openapi"]),
    ("This program", &["completions", "man", "help"]),
];

const OTHERS: &str = "Others";

/// The command that the parser adds.
const HELP: (&str, &str) = ("help", "Print this message or the help of a command");

/// Returns the template of the top level's help: the commands by group, then the options.
pub(in crate::commands) fn template() -> StyledStr {
    let commands = commands();
    let width = commands.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let styles = Styles::styled();
    let (heading, name_style) = (styles.get_header(), styles.get_literal());
    let row = |(name, about): &(String, String)| {
        format!("  {name_style}{name:width$}{name_style:#}  {about}\n")
    };
    let group = |title: &str, rows: String| match rows.is_empty() {
        true => String::new(),
        false => format!("{heading}{title}:{heading:#}\n{rows}\n"),
    };
    let is_of = |names: &[&str], name: &str| names.contains(&name);
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (title, names) in GROUPS {
        let of_group = names.iter().filter_map(|name| commands.iter().find(|one| one.0 == *name));
        text.push_str(&group(title, of_group.map(row).collect()));
    }
    let others = commands.iter().filter(|(name, _)| !GROUPS.iter().any(|(_, of)| is_of(of, name)));
    text.push_str(&group(OTHERS, others.map(row).collect()));
    text.push_str(&format!("{heading}Options:{heading:#}\n{{options}}{{after-help}}\n"));
    text.into()
}

/// Returns the name of each command with the first line of its help.
fn commands() -> Vec<(String, String)> {
    let top = crate::commands::Command::augment_subcommands(Command::new(""));
    let about = |one: &Command| one.get_about().map(ToString::to_string).unwrap_or_default();
    let shown = top.get_subcommands().filter(|one| !one.is_hide_set());
    let all = shown.map(|one| (one.get_name().to_owned(), about(one)));
    all.chain([(HELP.0.to_owned(), HELP.1.to_owned())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for (name, _) in commands() {
            assert_eq!(listed.iter().filter(|one| **one == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn the_template_names_every_command() {
        let text = template().to_string();
        for (name, about) in commands() {
            assert!(text.contains(&name) && text.contains(&about), "{name}: {text}");
        }
        assert!(!text.contains(OTHERS), "{text}");
    }
}
