//! Completions and manual pages.

use std::fs;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::server::{blackboard, finished};

fn completions(home: &TempDir, shell: &str) -> String {
    let mut command = blackboard(home);
    command.args(["completions", shell]);
    finished(command, "").text()
}

#[test]
fn bash_completes_commands_and_flags() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("blackboard.bash");
    fs::write(&path, completions(&home, "bash")).unwrap();
    let complete = |words: &str, last: usize| {
        let path = path.display();
        let script = format!(
            "source {path} || exit 5; complete -p blackboard > /dev/null || exit 6; \
             COMP_WORDS=({words}); COMP_CWORD={last}; \
             _blackboard blackboard \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{last}-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", &script]);
        let done = finished(command, "");
        assert_eq!(done.error, "", "{words}");
        done.text().trim().to_owned()
    };
    assert_eq!(complete("blackboard st", 1), "state");
    assert_eq!(complete("blackboard ta", 1), "tail");
    assert_eq!(complete("blackboard tail demo --com", 3), "--compact");
    assert_eq!(complete("blackboard state se", 2), "set");
    assert_eq!(complete("blackboard completions z", 2), "zsh");
    assert_eq!(complete("blackboard show demo --format js", 4), "json");
}

/// Types words and a tab into an interactive zsh, and keeps what it makes of them.
const ZSH: &str = r#"
zmodload zsh/zpty zsh/zselect || exit 3
dir=$1; shift
zpty shell "HISTFILE= TERM=xterm zsh -f -i"
# until_lines FILE N: waits until the file has so many lines, and takes what the shell prints meanwhile.
until_lines() {
    local printed
    until [[ -e $1 ]] && (( $(wc -l < $1) >= $2 )); do
        zpty -t shell || return 4
        zpty -r -t shell printed || zselect -t 2
    done
}
zpty -w shell "fpath=($dir \$fpath); autoload -Uz compinit && compinit -u -D 2> $dir/errors"
zpty -w shell "autoload +X -Uz _blackboard 2>> $dir/errors"
zpty -w shell "keep() { print -r -- \"\$BUFFER\" >> $dir/completed; BUFFER= }; zle -N keep; bindkey '^G' keep"
zpty -w shell "zle-line-init() { print >> $dir/ready }; zle -N zle-line-init; PS1="
until_lines $dir/ready 1 || exit 4
typeset -i count=0
for words; do
    zpty -w -n shell "$words"$'\t\a'
    count+=1
    until_lines $dir/completed $count || exit 4
done
zpty -d shell
"#;

#[test]
fn zsh_completes_commands_and_flags() {
    if Command::new("zsh").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("zsh is not installed: its completions were not tried");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("_blackboard");
    fs::write(&script, completions(&home, "zsh")).unwrap();
    let lines = [
        ("blackboard st", "blackboard state "),
        ("blackboard tail demo --com", "blackboard tail demo --compact "),
        ("blackboard state se", "blackboard state set "),
        ("blackboard completions z", "blackboard completions zsh "),
        ("blackboard show demo --format js", "blackboard show demo --format json "),
    ];
    let mut command = Command::new("zsh");
    command.args(["-f", "-c", ZSH, "zsh"]).arg(home.path()).args(lines.map(|(typed, _)| typed));
    command.env("HOME", home.path());
    finished(command, "").text();
    let completed = fs::read_to_string(home.path().join("completed")).unwrap();
    assert_eq!(completed.lines().collect::<Vec<_>>(), lines.map(|(_, expected)| expected));
    assert_eq!(fs::read_to_string(home.path().join("errors")).unwrap(), "");
}

#[test]
fn the_help_lists_the_commands_by_group() {
    let home = tempfile::tempdir().unwrap();
    let mut command = blackboard(&home);
    command.arg("--help");
    let help = finished(command, "").text();
    let group = |title: &str| {
        let block = help.split("\n\n").find(|block| block.starts_with(title)).unwrap_or_default();
        block.lines().skip(1).filter_map(|row| row.split_whitespace().next()).collect::<Vec<_>>()
    };
    assert!(group("Server:").contains(&"serve") && group("Data directory:").contains(&"backup"));
    assert!(
        group("Read a server:").contains(&"tail") && group("Write to a server:").contains(&"ask")
    );
    assert!(group("Options:").contains(&"-h,") && !help.contains('\u{1b}'), "{help}");
}

#[test]
fn each_shell_has_completions() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let text = completions(&home, shell);
        assert!(text.contains("checkpoint") && text.contains("idempotency-key"), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let home = tempfile::tempdir().unwrap();
    let man = |arguments: &[&str]| {
        let mut command = blackboard(&home);
        command.arg("man").args(arguments);
        finished(command, "")
    };
    assert!(man(&[]).text().contains(".TH blackboard 1"));
    assert!(man(&["tail"]).text().contains("blackboard\\-tail"));
    let page = man(&["tail"]).text();
    let examples = page.split(".SH EXAMPLES\n").nth(1).unwrap();
    assert!(examples.starts_with("  blackboard tail demo\n") && !page.contains("EXTRA"), "{page}");
    assert!(man(&["tale"]).refusal(2).contains("unknown command"));
    let dir = home.path().join("man1");
    fs::create_dir(&dir).unwrap();
    man(&["--dir", dir.to_str().unwrap()]).text();
    for page in fs::read_dir(&dir).unwrap() {
        let page = fs::read_to_string(page.unwrap().path()).unwrap();
        assert!(page.contains(".SH NAME") && !page.contains(".SH EXTRA"), "{page}");
    }
    for name in ["blackboard.1", "blackboard-tail.1", "blackboard-state-set.1"] {
        assert!(dir.join(name).is_file(), "{name}");
    }
}
