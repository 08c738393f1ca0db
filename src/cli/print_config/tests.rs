//! Tests of the printed settings.

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
