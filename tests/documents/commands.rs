//! Commands in documents, the page, errors and help: each is parsed by the binary's own parser.
//!
//! - A command begins with the word `blackboard`, or with `cargo run … --`, and ends where a shell ends it, or at the quote or
//!   tag that it stands in. Lists of arguments, as of hosts of MCP, are commands too.
//! - In a block of code, on the page and in help it must be complete. In a sentence a command without arguments is a name,
//!   which must exist.
//! - `$NAME`, `$(…)`, `{…}`, `…` and words in capitals stand for a value: one of [`VALUES`] or [`URLS`] must fit.

use std::fs;
use std::path::{Path, PathBuf};

use blackboard::commands::Cli;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, Parser as _};

use crate::{blocks, documents, files, root, spans};

/// What a placeholder may stand for: a number, which is a name too, a duration, a place.
const VALUES: [&str; 3] = ["1", "1s", "a/requests/1"];

/// What the placeholder `URL` may stand for.
const URLS: [&str; 2] = ["https://example.org", "postgres://user@example.org/database"];

/// Folders that a command may be called by.
const FOLDERS: [&str; 3] = ["/bin/", "/release/", "/debug/"];

/// A command where it stands.
#[derive(Clone, Debug)]
struct Printed {
    place: PathBuf,
    text: String,
    /// False in a sentence, which may name a command without its arguments.
    is_complete: bool,
}

/// The words of a command up to the shell's end of it, without quotes. A substitution is one placeholder.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '$') if rest.peek() == Some(&'(') => {
                let mut depth = 0;
                for c in rest.by_ref() {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    if depth == 0 {
                        break;
                    }
                }
                word.get_or_insert_default().push('…');
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '>' | '<') => {
                // The number of a redirected descriptor is no argument.
                word = word.filter(|word| !word.chars().all(|c| c.is_ascii_digit()));
                break;
            }
            (None, '|' | ';' | '&' | ')' | '\n') => break,
            (None, '#') if word.is_none() => break,
            (None, '\\') => word.get_or_insert_default().extend(rest.next()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A word with its placeholders replaced.
fn filled(word: &str, value: &str, url: &str) -> String {
    if word == "URL" {
        return url.to_owned();
    }
    let is_placeholder = word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '|'));
    if is_placeholder {
        return value.to_owned();
    }
    let (mut filled, mut rest) = (String::new(), word);
    while let Some(at) = rest.find(['$', '{', '…']) {
        let (before, found) = rest.split_at(at);
        filled.push_str(before);
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = match found.strip_prefix('$').unwrap_or(found) {
            // A format's or a template's argument, and no JSON.
            braced if braced.starts_with('{') && !braced.contains(['"', ':']) => {
                found.find('}').map_or(found.len(), |end| end + 1)
            }
            named if found.starts_with('$') => 1 + named.find(|c| !name(c)).unwrap_or(named.len()),
            _ if found.starts_with('…') => '…'.len_utf8(),
            _ => {
                filled.push('{');
                rest = &found[1..];
                continue;
            }
        };
        filled.push_str(value);
        rest = &found[end..];
    }
    filled + rest
}

/// Why the binary would not take that command, if it would not.
fn fault(printed: &Printed, top: &Command) -> Option<String> {
    let words = words(&printed.text);
    let mut command = top;
    let mut names = 0;
    while let Some(nested) = words.get(names).and_then(|word| command.find_subcommand(word)) {
        (command, names) = (nested, names + 1);
    }
    if !printed.is_complete && names > 0 && names == words.len() {
        return None;
    }
    let pairs = VALUES.iter().flat_map(|value| URLS.iter().map(move |url| (value, url)));
    let mut faults = pairs.map(|(value, url)| {
        let words = words.iter().map(|word| filled(word, value, url));
        let parsed = Cli::try_parse_from(["blackboard".to_owned()].into_iter().chain(words));
        parsed.err().filter(|error| {
            !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
        })
    });
    let first = faults.next().flatten()?;
    let fits = faults.any(|fault| fault.is_none());
    (!fits).then(|| first.to_string().lines().next().unwrap_or_default().to_owned())
}

/// The commands in a text, each up to the end of its line, or to the quote or tag that it stands in.
fn commands(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let run = line.split_once("cargo run").and_then(|(_, rest)| rest.split_once(" -- "));
        // Another package has commands of its own.
        if let Some((_, rest)) = run.filter(|(options, _)| !options.contains(" -p ")) {
            found.push(rest);
            continue;
        }
        for (at, name) in line.match_indices("blackboard ") {
            let (before, rest) = (&line[..at], &line[at + name.len()..]);
            let opened = before.chars().next_back();
            let begins = opened.is_none_or(|c| c.is_whitespace() || "('\"`>".contains(c));
            let begins = begins || FOLDERS.iter().any(|folder| before.ends_with(folder));
            // The value of an option is no command.
            let after_option = before.ends_with(' ')
                && before
                    .split_whitespace()
                    .next_back()
                    .is_some_and(|word| word.len() > 2 && word.starts_with('-'));
            if begins && !after_option && rest.starts_with(|c: char| c.is_ascii_lowercase()) {
                let closing = match opened {
                    Some('>') => Some('<'),
                    Some(quote @ ('\'' | '"' | '`')) => Some(quote),
                    Some(_) | None => None,
                };
                let end = closing.and_then(|closing| rest.find(closing));
                found.push(&rest[..end.unwrap_or(rest.len())]);
            }
        }
    }
    found
}

/// The commands that are given as lists of strings: the arguments of a host of MCP, and what a container runs.
fn lists(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_ours = false;
    for part in text.split_inclusive(']') {
        let (before, list) = part.rsplit_once('[').unwrap_or((part, ""));
        let strings: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let named = |text: &str| text == "blackboard" || text.ends_with("/blackboard");
        is_ours = before.split('"').any(named) || (is_ours && !before.contains("command"));
        // A container's list begins with `CMD`.
        let own = strings.iter().take(2).position(|text| named(text));
        let arguments = match own {
            Some(own) => strings.get(own + 1..),
            None if is_ours && before.contains("args") => Some(&strings[..]),
            None => None,
        };
        let quoted = |word: &&str| format!("'{word}'");
        let arguments = arguments.unwrap_or_default();
        if !arguments.is_empty() {
            found.push(arguments.iter().map(quoted).collect::<Vec<_>>().join(" "));
        }
    }
    found
}

/// The text of a program's literals as it is printed, each on a line; comments of Rust, which are no literals, are left out.
fn literals(text: &str, is_rust: bool) -> String {
    let code = text.lines().filter(|line| !(is_rust && line.trim_start().starts_with("//")));
    let code: String = code.map(|line| format!("{}\n", line.trim_start())).collect();
    let (quote, printed) = ("\u{1}", code.replace("\\\n", ""));
    let printed = printed.replace("\\\"", quote).replace('"', "\n").replace(quote, "\"");
    printed.replace("\\n", "\n").replace("\\x20", " ")
}

/// The commands of the documents, and of the READMEs of clients and examples.
fn documented() -> Vec<Printed> {
    let mut found = Vec::new();
    for (place, text) in documents() {
        let mut add = |text: &str, is_complete| {
            found.push(Printed { place: place.clone(), text: text.to_owned(), is_complete });
        };
        for block in blocks(&text) {
            let joined = block.replace("\\\n", " ");
            // What a comment of a program shows is what it prints.
            let lines = joined.lines().map(|line| line.split(" // ").next().unwrap_or_default());
            lines.flat_map(commands).for_each(|command| add(command, true));
            lists(&block).iter().for_each(|command| add(command, true));
        }
        for span in spans(&text) {
            commands(&span).into_iter().for_each(|command| add(command, false));
        }
    }
    found
}

/// The commands in files that are no documents, in lines that a person reads or a machine runs.
fn in_files(folders: &[&str], suffixes: &[&str], is_complete: bool) -> Vec<Printed> {
    let known = Cli::command();
    let paths =
        folders.iter().flat_map(|folder| suffixes.iter().map(move |suffix| (*folder, *suffix)));
    let mut found = Vec::new();
    for path in paths.flat_map(|(folder, suffix)| files(folder, suffix)) {
        let place = path.strip_prefix(root()).unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        let (text, listed) = match suffix {
            "rs" | "py" | "ts" => (literals(&text, suffix == "rs"), Vec::new()),
            "js" | "html" => (text, Vec::new()),
            _ => {
                let listed = lists(&text);
                (text, listed)
            }
        };
        let lines = commands(&text).into_iter().filter(|line| {
            // A sentence may go on after our name.
            let first = line.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next();
            first.is_some_and(|first| known.find_subcommand(first).is_some())
        });
        let all = lines.map(str::to_owned).chain(listed);
        found.extend(all.map(|text| Printed { place: place.clone(), text, is_complete }));
    }
    found
}

/// The examples of every command's help.
fn helped() -> Vec<Printed> {
    fn walk(command: &mut Command, found: &mut Vec<Printed>) {
        let help = command.render_long_help().to_string();
        let place = Path::new("--help of").join(command.get_name());
        let examples =
            help.lines().filter_map(|line| line.trim_start().strip_prefix("blackboard "));
        found.extend(examples.map(|text| Printed {
            place: place.clone(),
            text: text.to_owned(),
            is_complete: true,
        }));
        command.get_subcommands_mut().for_each(|nested| walk(nested, found));
    }
    let mut found = Vec::new();
    walk(&mut Cli::command(), &mut found);
    found
}

#[test]
fn every_printed_command_is_one_that_the_binary_takes() {
    let clients = ["clients/python/src", "clients/typescript/src", "examples"];
    // Each with the least number of its commands, so that none is passed over in silence.
    let sources = [
        (documented(), 60),
        (in_files(&["crates/ui/page"], &["js", "html"], true), 1),
        (in_files(&["src", "crates"], &["rs"], true), 20),
        (in_files(&["docker", "packaging"], &["yaml", "service", ""], false), 1),
        (in_files(&clients, &["py", "ts"], false), 1),
        (helped(), 20),
    ];
    let counts: Vec<_> = sources.iter().map(|(found, least)| (found.len(), *least)).collect();
    assert!(counts.iter().all(|(found, least)| found >= least), "found, at least: {counts:?}");
    let all: Vec<Printed> = sources.into_iter().flat_map(|(found, _)| found).collect();
    let top = Cli::command();
    let faults = all.iter().filter_map(|printed| {
        let fault = fault(printed, &top)?;
        Some(format!("{}: blackboard {}\n    {fault}", printed.place.display(), printed.text))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
