//! The configuration file: the server, the token and the agent of a person.
//!
//! It is a JSON object with the members `url`, `token`, `token_file`, `agent` and `ca`. A file with a token must be
//! readable by its owner only, and the token goes to the file's own URL only.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::system::{config_home, foreign_mode};
use blackboard_board::AgentName;
use blackboard_client::{BaseUrl, InvalidBaseUrl, InvalidToken, Token, TokenError};

/// The maximum size of the file, in bytes.
const CONFIG_BYTES_MAX: u64 = 64 << 10;

/// The settings of a file.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    pub(super) url: Option<BaseUrl>,
    pub(super) agent: Option<AgentName>,
    pub(super) ca: Option<PathBuf>,
    token: Option<Token>,
    token_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    url: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    agent: Option<AgentName>,
    ca: Option<PathBuf>,
}

/// A configuration file that cannot be used. No message quotes the file, which may hold a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("cannot read the configuration {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the configuration {} has more than {CONFIG_BYTES_MAX} bytes", path.display())]
    TooLarge { path: PathBuf },
    #[error(
        "the configuration {} is not a JSON object of url, token, token_file, agent and ca: line {line}, column {column}",
        path.display()
    )]
    Malformed { path: PathBuf, line: usize, column: usize },
    #[error("the configuration {} has no usable url", path.display())]
    Url { path: PathBuf, source: InvalidBaseUrl },
    #[error("the configuration {} has no usable token", path.display())]
    Token { path: PathBuf, source: InvalidToken },
    #[error("the configuration {} has a token without the url that it is for", path.display())]
    TokenWithoutUrl { path: PathBuf },
    #[error(
        "the configuration {} holds a token and may be read by others (mode {mode:03o}); run chmod 600 on it",
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
}

impl ConfigFile {
    /// Reads this file, or the default one, which need not exist.
    pub(super) fn read(given: Option<&Path>) -> Result<Self, ConfigFileError> {
        let default = || Some(config_home()?.join("blackboard").join("config.json"));
        let Some(path) = given.map(Path::to_owned).or_else(default) else {
            return Ok(Self::default());
        };
        match File::open(&path) {
            Ok(file) => Self::of(&path, file),
            Err(error) if given.is_none() && is_absent(&error) => Ok(Self::default()),
            Err(source) => Err(ConfigFileError::Unreadable { path, source }),
        }
    }

    fn of(path: &Path, file: File) -> Result<Self, ConfigFileError> {
        let path = path.to_owned();
        let unreadable = |source| ConfigFileError::Unreadable { path: path.clone(), source };
        let exposed = foreign_mode(&file.metadata().map_err(unreadable)?);
        let mut text = String::new();
        file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > CONFIG_BYTES_MAX {
            return Err(ConfigFileError::TooLarge { path });
        }
        let members: Members = serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            ConfigFileError::Malformed { path: path.clone(), line, column }
        })?;
        let Members { url, token, token_file, agent, ca } = members;
        if let Some(mode) = exposed.filter(|_| token.is_some()) {
            return Err(ConfigFileError::Exposed { path, mode });
        }
        if url.is_none() && (token.is_some() || token_file.is_some()) {
            return Err(ConfigFileError::TokenWithoutUrl { path });
        }
        let url = url.map(|url| url.parse()).transpose();
        let url = url.map_err(|source| ConfigFileError::Url { path: path.clone(), source })?;
        let token = token.map(|token| token.parse()).transpose();
        let token = token.map_err(|source| ConfigFileError::Token { path, source })?;
        Ok(Self { url, agent, ca, token, token_file })
    }

    /// Returns the file's token, if this is the URL that it is for.
    pub(super) fn token_for(&self, url: &BaseUrl) -> Result<Option<Token>, TokenError> {
        if self.url.as_ref() != Some(url) {
            return Ok(None);
        }
        match (&self.token, &self.token_file) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(path)) => Token::from_file(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Returns the file of the token, if this is the URL that it is for and it is in one.
    pub(super) fn token_file_for(&self, url: &BaseUrl) -> Option<&Path> {
        let path = self.token_file.as_deref().filter(|_| self.token.is_none());
        path.filter(|_| self.url.as_ref() == Some(url))
    }
}

/// Returns true if there is no file: none of that name, or no folder.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tempfile::TempDir;

    use super::*;
    use crate::system::draft;

    fn written(home: &TempDir, text: &str) -> PathBuf {
        let path = home.path().join("config.json");
        draft(&path).unwrap().write_all(text.as_bytes()).unwrap();
        path
    }

    fn read(home: &TempDir, text: &str) -> Result<ConfigFile, ConfigFileError> {
        ConfigFile::read(Some(&written(home, text)))
    }

    #[test]
    fn a_token_of_the_file_goes_to_its_own_url_only() {
        let home = tempfile::tempdir().unwrap();
        let file = read(&home, r#"{"url":"https://a.example","token":"bb_secret"}"#).unwrap();
        let is_sent = |url: &str| file.token_for(&url.parse().unwrap()).unwrap().is_some();
        assert!(is_sent("https://a.example") && is_sent("https://a.example/"));
        assert!(!is_sent("http://a.example") && !is_sent("https://b.example"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_holds_no_token() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt as _;

        let home = tempfile::tempdir().unwrap();
        let read = |text: &str, mode: u32| {
            let path = written(&home, text);
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            ConfigFile::read(Some(&path))
        };
        for mode in [0o644, 0o640, 0o602] {
            let refused =
                read(r#"{"url":"https://a.example","token":"bb_secret"}"#, mode).unwrap_err();
            assert!(matches!(refused, ConfigFileError::Exposed { mode: m, .. } if m == mode));
        }
        assert!(read(r#"{"url":"https://a.example","agent":"A"}"#, 0o644).is_ok());
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
            let refused = read(&home, text).unwrap_err();
            let shown = blackboard_error_chain::Chain(&refused).to_string();
            assert!(shown.contains("config.json") && !shown.contains("secret"), "{shown}");
        }
        let large = " ".repeat(usize::try_from(CONFIG_BYTES_MAX).unwrap() + 1);
        assert!(matches!(read(&home, &large), Err(ConfigFileError::TooLarge { .. })));
        let absent = ConfigFile::read(Some(&home.path().join("absent")));
        assert!(matches!(absent, Err(ConfigFileError::Unreadable { .. })));
    }
}
