//! Completions and manual pages.

use std::fs;
use std::process::{Command, Stdio};

use crate::server::{blackboard, finished};

#[test]
fn bash_completes_commands_and_flags() {
    let home = tempfile::tempdir().unwrap();
    let mut command = blackboard(&home);
    command.args(["completions", "bash"]);
    let path = home.path().join("blackboard.bash");
    fs::write(&path, finished(command, "").text()).unwrap();
    let complete = |words: &str, last: usize| {
        let path = path.display();
        let script = format!(
            "source {path}; COMP_WORDS=({words}); COMP_CWORD={last}; \
             _blackboard blackboard \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{last}-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let output =
            Command::new("bash").args(["--norc", "-c", &script]).stdin(Stdio::null()).output();
        String::from_utf8(output.expect("bash runs").stdout).unwrap()
    };
    assert_eq!(complete("blackboard ta", 1).trim(), "tail");
    assert_eq!(complete("blackboard tail demo --com", 3).trim(), "--compact");
    assert_eq!(complete("blackboard state se", 2).trim(), "set");
}

#[test]
fn each_shell_has_completions() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let mut command = blackboard(&home);
        command.args(["completions", shell]);
        let text = finished(command, "").text();
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
    assert!(man(&["tale"]).refusal(2).contains("there is no command"));
    let dir = home.path().join("man1");
    fs::create_dir(&dir).unwrap();
    man(&["--dir", dir.to_str().unwrap()]).text();
    for name in ["blackboard.1", "blackboard-tail.1", "blackboard-state-set.1"] {
        assert!(dir.join(name).is_file(), "{name}");
    }
}
