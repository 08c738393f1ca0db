//! The connection of the commands that talk to a server: URL, token and root certificates.
//!
//! A flag takes precedence over its environment variable, that over the configuration file. A token comes from a file or
//! a variable, never from an argument, which other users of the machine could read.

mod config_file;
mod sentence;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf, absolute};

use clap::Args;

use self::config_file::{ConfigFile, ConfigFileError};
pub(crate) use self::sentence::{foreign, innermost, unconnected};
use crate::system::CONFIG_HELP;
use blackboard_board::AgentName;
use blackboard_client::{BaseUrl, Client, InvalidBaseUrl, InvalidToken, Limits, Token, TokenError};
use blackboard_roots::{Roots, RootsError};

/// The variable that holds a token.
const TOKEN_VARIABLE: &str = "BLACKBOARD_TOKEN";

/// The server of a command without a URL.
const URL_DEFAULT: &str = "http://127.0.0.1:8733";

/// The flags of a connection.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
#[expect(clippy::doc_markdown, reason = "the text is printed as it stands")]
pub(crate) struct Connection {
    /// URL of the server, http or https [default: http://127.0.0.1:8733]
    #[arg(long, env = "BLACKBOARD_URL", hide_env_values = true, value_name = "URL")]
    url: Option<String>,

    /// File that holds the token; it takes precedence over BLACKBOARD_TOKEN
    #[arg(long, env = "BLACKBOARD_TOKEN_FILE", value_name = "PATH")]
    token_file: Option<PathBuf>,

    /// Name of the agent or person that writes; not needed if the token is bound to one
    #[arg(long, env = "BLACKBOARD_AGENT", value_name = "AGENT")]
    agent: Option<AgentName>,

    /// PEM file with the root certificates to trust, instead of those of the system
    #[arg(long, env = "BLACKBOARD_CA", value_name = "PATH")]
    ca: Option<PathBuf>,

    /// The settings of a person.
    #[arg(long, env = "BLACKBOARD_CONFIG", value_name = "PATH", help = CONFIG_HELP)]
    config: Option<PathBuf>,
}

/// A connection that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The parser of arguments would print the URL with a password in it.
    #[error("--url (BLACKBOARD_URL) is not usable")]
    Url(#[from] InvalidBaseUrl),
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("{TOKEN_VARIABLE} holds no token")]
    Variable(#[source] InvalidToken),
    #[error("{TOKEN_VARIABLE} is not text")]
    Text,
    #[error(transparent)]
    ConfigFile(#[from] ConfigFileError),
}

/// A client with what it was made of.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) token: Option<Token>,
    pub(crate) agent: Option<AgentName>,
    /// The token is sent unencrypted over a network.
    pub(crate) is_exposed: bool,
}

/// The warning of a connection that is exposed.
pub(crate) const EXPOSED: &str =
    "the token goes over the network unencrypted; use https in --url (BLACKBOARD_URL)";

impl Connection {
    /// Makes the client; no connection is opened.
    pub(crate) fn client(&self, limits: Limits) -> Result<Connected, Unusable> {
        let file = ConfigFile::read(self.config.as_deref())?;
        let url = self.url(&file)?;
        let token = match self.token()? {
            Some(token) => Some(token),
            None => file.token_for(&url)?,
        };
        let is_exposed = token.is_some() && !url.is_tls() && !url.is_loopback();
        let roots = self.ca.clone().or(file.ca).map_or(Roots::System, Roots::File);
        let client = Client::new(url, token.as_ref(), &roots, limits)?;
        Ok(Connected { client, token, agent: self.agent.clone().or(file.agent), is_exposed })
    }

    /// Returns variables, to set or to remove, by which a command of another process has this connection. A token that
    /// is in a file is named by the file alone.
    pub(crate) fn variables(&self) -> Result<Vec<(&'static str, Option<OsString>)>, Unusable> {
        let file = ConfigFile::read(self.config.as_deref())?;
        let url = self.url(&file)?;
        let has_variable = env::var_os(TOKEN_VARIABLE).is_some_and(|token| !token.is_empty());
        let of_config = file.token_file_for(&url).filter(|_| !has_variable);
        let token_file = self.token_file.as_deref().or(of_config);
        let ca = self.ca.as_deref().or(file.ca.as_deref());
        let path = |path: &Path| absolute(path).unwrap_or_else(|_| path.to_owned()).into();
        let mut variables = vec![("BLACKBOARD_URL", Some(url.to_string().into()))];
        if let Some(token_file) = token_file {
            variables.push(("BLACKBOARD_TOKEN_FILE", Some(path(token_file))));
            variables.push((TOKEN_VARIABLE, None));
        }
        variables.extend(ca.map(|ca| ("BLACKBOARD_CA", Some(path(ca)))));
        let config = self.config.as_deref();
        variables.extend(config.map(|config| ("BLACKBOARD_CONFIG", Some(path(config)))));
        Ok(variables)
    }

    fn url(&self, file: &ConfigFile) -> Result<BaseUrl, Unusable> {
        match (&self.url, &file.url) {
            (Some(url), _) => Ok(url.parse()?),
            (None, Some(url)) => Ok(url.clone()),
            (None, None) => Ok(URL_DEFAULT.parse()?),
        }
    }

    /// Returns the token of the flag or the environment.
    fn token(&self) -> Result<Option<Token>, Unusable> {
        if let Some(path) = &self.token_file {
            return Ok(Some(Token::from_file(path)?));
        }
        let value = match env::var(TOKEN_VARIABLE) {
            Ok(value) => value,
            Err(env::VarError::NotPresent) => return Ok(None),
            Err(env::VarError::NotUnicode(_)) => return Err(Unusable::Text),
        };
        // Hosts set a variable of their configuration that has no value to nothing.
        if value.is_empty() {
            return Ok(None);
        }
        value.parse().map(Some).map_err(Unusable::Variable)
    }
}
