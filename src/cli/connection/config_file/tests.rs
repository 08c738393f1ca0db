//! Where the configuration is, what it may say, and who may read it.

use std::fs::{self, Permissions};

use tempfile::TempDir;

use super::*;

fn read(home: &TempDir, text: &str, mode: u32) -> Result<ConfigFile, ConfigFileError> {
    let path = home.path().join("config.json");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    ConfigFile::read(Some(&path))
}

#[test]
fn the_file_is_where_xdg_says() {
    let path = |config_home: Option<&str>, home: Option<&str>| {
        default_path(config_home.map(Into::into), home.map(Into::into))
    };
    let expected = |text: &str| Some(PathBuf::from(text));
    assert_eq!(path(Some("/c"), Some("/h")), expected("/c/blackboard/config.json"));
    assert_eq!(path(None, Some("/h")), expected("/h/.config/blackboard/config.json"));
    assert_eq!(path(Some("c"), Some("/h")), expected("/h/.config/blackboard/config.json"));
    assert_eq!(path(Some(""), None), None);
}

#[test]
fn a_token_of_the_file_goes_to_its_own_url_only() {
    let home = tempfile::tempdir().unwrap();
    let file = read(&home, r#"{"url":"https://a.example","token":"bb_secret"}"#, 0o600).unwrap();
    let is_sent = |url: &str| file.token_for(&url.parse().unwrap()).unwrap().is_some();
    assert!(is_sent("https://a.example") && is_sent("https://a.example/"));
    assert!(!is_sent("http://a.example") && !is_sent("https://b.example"));
}

#[test]
fn a_file_that_others_may_read_holds_no_token() {
    let home = tempfile::tempdir().unwrap();
    let text = r#"{"url":"https://a.example","token":"bb_secret"}"#;
    for mode in [0o644, 0o640, 0o602] {
        let refused = read(&home, text, mode).unwrap_err();
        assert!(matches!(refused, ConfigFileError::Exposed { mode: m, .. } if m == mode));
    }
    assert!(read(&home, r#"{"url":"https://a.example","agent":"A"}"#, 0o644).is_ok());
}

#[test]
fn a_file_that_is_wrong_says_so_without_quoting_it() {
    let home = tempfile::tempdir().unwrap();
    for text in [
        r#"{"tokn":"bb_secret"}"#,
        r#"{"token":"bb_secret"}"#,
        r#"{"url":"https://a:bb_secret@a.example"}"#,
        r#"{"url":"https://a.example","token":"bb secret"}"#,
        r#"{"url":"https://a.example","agent":"bb_secret/"}"#,
        "bb_secret",
    ] {
        let refused = read(&home, text, 0o600).unwrap_err();
        let shown = crate::error_chain::Chain(&refused).to_string();
        assert!(shown.contains("config.json") && !shown.contains("secret"), "{shown}");
    }
    let large = " ".repeat(usize::try_from(CONFIG_BYTES_MAX).unwrap() + 1);
    assert!(matches!(read(&home, &large, 0o600), Err(ConfigFileError::TooLarge { .. })));
    let absent = ConfigFile::read(Some(&home.path().join("absent")));
    assert!(matches!(absent, Err(ConfigFileError::Unreadable { .. })));
}
