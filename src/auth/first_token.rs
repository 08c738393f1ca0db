//! The first token: generated at start, or read from a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{AuthError, InvalidSecret, NewToken, Scope, Secret, Tokens};
use crate::board::{InvalidName, TokenName};

/// Where in its data directory a server leaves the token that it made for itself.
pub const ADMIN_TOKEN_FILE: &str = "admin-token";

/// What the token that a server made is called.
const MADE: &str = "admin";

/// What a token that was given in a file is called.
const GIVEN: &str = "admin-token-file";

/// A token and the end of its line; more in a file is not one token.
const FILE_BYTES_MAX: u64 = 256;

/// For its owner only.
const FILE_MODE: u32 = 0o600;

/// Why there is no first token.
#[derive(Debug, thiserror::Error)]
pub enum FirstTokenError {
    /// The file cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is in the file is no token.
    #[error("{} does not hold one token", path.display())]
    NoToken {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: InvalidSecret,
    },
    /// The token in the file was revoked; it stays so.
    #[error("the token in {} was revoked; put another one there", path.display())]
    Revoked {
        /// Which one.
        path: PathBuf,
    },
    /// The token in the file is known, and may not do everything.
    #[error("the token in {} is one that may not do everything; put another one there", path.display())]
    Limited {
        /// Which one.
        path: PathBuf,
    },
    /// It has no name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// It could not be kept.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

/// Gives a store that never had a token its first one, and leaves it in the data directory; where it lies, if it
/// was made now.
///
/// The file comes first: a crash between leaves one that is taken by the next start.
///
/// # Errors
///
/// [`FirstTokenError`].
pub fn first_token(tokens: &Tokens, data: &Path) -> Result<Option<PathBuf>, FirstTokenError> {
    if tokens.are_required() {
        return Ok(None);
    }
    let path = data.join(ADMIN_TOKEN_FILE);
    let secret = match read(&path) {
        Ok(secret) => secret,
        Err(FirstTokenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let secret = Secret::random().map_err(AuthError::from)?;
            write(&path, &secret).map_err(|source| file_error(&path, source))?;
            secret
        }
        Err(error) => return Err(error),
    };
    tokens.adopt(admin(MADE.parse()?), &secret)?;
    Ok(Some(path))
}

/// Takes the token in a file as an admin token; the one that was there before is revoked.
///
/// # Errors
///
/// [`FirstTokenError`].
pub fn given_token(tokens: &Tokens, path: &Path) -> Result<(), FirstTokenError> {
    let secret = read(path)?;
    if tokens.are_required() {
        if let Ok(caller) = tokens.authenticate(Some(secret.reveal())) {
            let is_admin = caller.may(Scope::Admin) && caller.reaches_all();
            let limited = || FirstTokenError::Limited { path: path.to_owned() };
            return is_admin.then_some(()).ok_or_else(limited);
        }
        match tokens.revoke(GIVEN) {
            Ok(_) | Err(AuthError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match tokens.adopt(admin(GIVEN.parse()?), &secret) {
        Ok(_) => Ok(()),
        Err(AuthError::Known { .. }) => Err(FirstTokenError::Revoked { path: path.to_owned() }),
        Err(error) => Err(error.into()),
    }
}

fn admin(name: TokenName) -> NewToken {
    NewToken {
        name,
        scopes: [Scope::Admin].into_iter().collect(),
        sessions: "*".parse().into_iter().collect(),
        agent: None,
        expires_at: None,
    }
}

fn read(path: &Path) -> Result<Secret, FirstTokenError> {
    let mut text = String::new();
    let file = File::open(path).map_err(|source| file_error(path, source))?;
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|source| file_error(path, source))?;
    let no_token = |source| FirstTokenError::NoToken { path: path.to_owned(), source };
    text.trim().parse().map_err(no_token)
}

/// Whole under its name, or not there.
fn write(path: &Path, secret: &Secret) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(FILE_MODE);
    let mut file = options.open(&temporary)?;
    writeln!(file, "{}", secret.reveal())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |data| File::open(data)?.sync_all())
}

fn file_error(path: &Path, source: io::Error) -> FirstTokenError {
    FirstTokenError::File { path: path.to_owned(), source }
}
