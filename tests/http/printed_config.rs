//! `serve --print-config`: settings and sources, without opening the store or a socket.

use crate::harness::{blackboard, finished};

#[test]
fn every_setting_is_told_with_its_source_and_nothing_is_made() {
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    let output = blackboard(&["serve", "--print-config", "--data"])
        .arg(&data)
        .env("BLACKBOARD_PUBLIC_URL", "https://board.example.org")
        .env("BLACKBOARD_LISTEN", "0.0.0.0:80")
        .output()
        .expect("the binary runs");
    let told = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{told}");
    for lines in [
        format!("# --data, from flag\nBLACKBOARD_DATA={}\n", data.display()),
        "# --public-url, from environment\nBLACKBOARD_PUBLIC_URL=https://board.example.org\n"
            .to_owned(),
        "# --sync, from default\nBLACKBOARD_SYNC=full\n".to_owned(),
        "# --qa-file is not set\n#BLACKBOARD_QA_FILE=\n".to_owned(),
        "# --insecure, from default\nBLACKBOARD_INSECURE=false\n".to_owned(),
    ] {
        assert!(told.contains(&lines), "no {lines:?} in\n{told}");
    }
    assert!(!told.contains("PRINT_CONFIG"), "{told}");
    assert!(!data.exists());

    // The lines are an environment that gives the same.
    let again = told.lines().filter(|line| !line.starts_with('#'));
    let set = again.map(|line| line.split_once('=').expect("a setting"));
    let mut command = blackboard(&["serve", "--print-config"]);
    command.envs(set.map(|(name, value)| (name, value.trim_matches('\''))));
    let output = command.output().expect("the binary runs");
    let values = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect()
    };
    assert_eq!(values(&String::from_utf8(output.stdout).expect("text")), values(&told));
}

#[test]
fn what_is_no_setting_is_refused_all_the_same() {
    let refused = finished(&["serve", "--print-config", "--sync", "never"]);
    assert_eq!(refused.status.code(), Some(2));
}
