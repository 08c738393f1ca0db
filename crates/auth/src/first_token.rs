//! The first token: generated at start, or read from a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use uuid::Builder;

use super::{AuthError, InvalidSecret, NewToken, Scope, Secret, TokenId, Tokens, Unauthorized};
use blackboard_board::{InvalidName, TokenName};
use blackboard_owner_files::{FILE_MODE, explained};

/// The file in the data directory that holds a generated first token.
pub const ADMIN_TOKEN_FILE: &str = "admin-token";

/// The name of a generated first token.
const MADE: &str = "admin";

/// The name of a token given in a file.
const GIVEN: &str = "admin-token-file";

/// The size of a token and its line end, the longest valid content of a file.
const FILE_BYTES_MAX: u64 = 256;

/// A first token that could not be created or read.
#[derive(Debug, thiserror::Error)]
pub enum FirstTokenError {
    /// The file cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not hold one token.
    #[error("{} does not hold one token", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: InvalidSecret,
    },
    /// The token in the file was revoked, and stays revoked.
    #[error(
        "the token in {0} was revoked, and stays invalid; write another one to the file: printf 'bb_%s' \"$(openssl \
         rand -base64 32 | tr '+/' '-_' | tr -d =)\" >{0}",
        path.display()
    )]
    Revoked {
        /// The file.
        path: PathBuf,
    },
    /// The token in the file is known, but is not an admin token.
    #[error("the token in {} is not an admin token for all sessions; use another one", path.display())]
    Limited {
        /// The file.
        path: PathBuf,
    },
    /// The token has no name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The token could not be stored.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

/// Creates the first token of a store that never had one, in a file of the data directory. Returns the file's path
/// if a token was created.
///
/// The file is written first: the next start takes over one that a crash left.
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

/// Registers the token in a file as an admin token, and revokes the one registered before.
///
/// # Errors
///
/// [`FirstTokenError`].
pub fn given_token(tokens: &Tokens, path: &Path) -> Result<(), FirstTokenError> {
    let secret = read(path)?;
    tokens.refresh().map_err(AuthError::from)?;
    if tokens.are_required() {
        match tokens.authenticate(Some(secret.reveal())) {
            Ok(caller) => {
                let is_admin = caller.may(Scope::Admin) && caller.reaches_all();
                let limited = || FirstTokenError::Limited { path: path.to_owned() };
                return is_admin.then_some(()).ok_or_else(limited);
            }
            Err(Unauthorized::Unknown) => {}
            // An earlier content of the file, perhaps: the token that is registered now stays.
            Err(_) => return Err(FirstTokenError::Revoked { path: path.to_owned() }),
        }
        match tokens.revoke(GIVEN) {
            Ok(_) | Err(AuthError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match tokens.adopt_as(id_of(&secret), admin(GIVEN.parse()?), &secret) {
        Ok(_) => Ok(()),
        // Another server of the store may have registered it just now.
        Err(AuthError::Known { .. }) if tokens.authenticate(Some(secret.reveal())).is_ok() => {
            Ok(())
        }
        Err(AuthError::Known { .. }) => Err(FirstTokenError::Revoked { path: path.to_owned() }),
        Err(error) => Err(error.into()),
    }
}

/// Returns the id of a given token, by its secret: servers of one store that start at the same time make one token.
fn id_of(secret: &Secret) -> TokenId {
    let mut hash = Sha256::new_with_prefix(GIVEN);
    hash.update(secret.reveal());
    let bytes: [u8; 32] = hash.finalize().into();
    let id = bytes.first_chunk().copied().unwrap_or_default();
    TokenId(Builder::from_custom_bytes(id).into_uuid())
}

fn admin(name: TokenName) -> NewToken {
    NewToken {
        name,
        scopes: [Scope::Admin].into_iter().collect(),
        sessions: "*".parse().into_iter().collect(),
        agent: None,
        expires_at: None,
        anyway: false,
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

/// Writes a file that appears only once complete.
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
    FirstTokenError::File { path: path.to_owned(), source: explained(path, source) }
}
