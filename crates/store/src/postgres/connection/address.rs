//! The address of a PostgreSQL service.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::PostgresError;

/// How the connection is encrypted, by the names of libpq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// `require`, `prefer` or `disable`: the certificate is verified only against a given file.
    AsAsked,
    /// `verify-full`: by the given file, or by the system's roots.
    Verified,
}

/// The address of a PostgreSQL service, as in
/// `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?target_session_attrs=read-write&sslmode=verify-full`.
///
/// The parameters are libpq's. `sslmode` is `disable`, `prefer` (the default), `require` or `verify-full`; `sslrootcert`
/// names a PEM file. Shown without its password.
#[derive(Clone)]
pub struct PostgresUrl {
    pub(super) config: Box<Config>,
    pub(super) encryption: Encryption,
    pub(super) roots: Option<PathBuf>,
}

impl FromStr for PostgresUrl {
    type Err = PostgresError;

    fn from_str(text: &str) -> Result<Self, PostgresError> {
        let wrong = |why: &str| PostgresError::Address(format!("the store's address {why}"));
        if !(text.starts_with("postgres://") || text.starts_with("postgresql://")) {
            return Err(wrong("must begin with postgres://"));
        }
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        // The parser would take the rest of the password for a host, which is shown.
        if place.matches('@').count() > 1 {
            return Err(wrong("has more than one @: write %40 for one in the password"));
        }
        let (mut encryption, mut mode, mut roots) = (Encryption::AsAsked, SslMode::Prefer, None);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", "disable")) => mode = SslMode::Disable,
                Some(("sslmode", "prefer")) => mode = SslMode::Prefer,
                Some(("sslmode", "require")) => mode = SslMode::Require,
                Some(("sslmode", "verify-full")) => {
                    (mode, encryption) = (SslMode::Require, Encryption::Verified);
                }
                Some(("sslmode", _)) => {
                    return Err(wrong(
                        "has an sslmode that is not disable, prefer, require or verify-full",
                    ));
                }
                Some(("sslrootcert", path)) => {
                    let path = percent_decode_str(path).decode_utf8();
                    roots = Some(path.map_err(|_| wrong("has an sslrootcert that is not UTF-8"))?);
                }
                Some(("password", _)) => {
                    return Err(wrong("has the password as a parameter: write it before the @"));
                }
                Some(_) => rest.push(pair),
                None => return Err(wrong("has a parameter without a value")),
            }
        }
        // The parser's text may quote the password.
        let mut config: Config = [place, &rest.join("&")].join("?").parse().map_err(|_| {
            wrong("is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE?NAME=VALUE")
        })?;
        config.ssl_mode(mode);
        if config.get_hosts().is_empty() {
            return Err(wrong("names no host"));
        }
        if config.get_application_name().is_none() {
            config.application_name("blackboard");
        }
        let roots = roots.map(|path| PathBuf::from(&*path));
        Ok(Self { config: Box::new(config), encryption, roots })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(index).or_else(|| ports.first()).copied().unwrap_or(5432);
            let comma = if index > 0 { "," } else { "" };
            match host {
                Host::Tcp(host) => write!(f, "{comma}{host}:{port}")?,
                Host::Unix(path) => write!(f, "{comma}{}:{port}", path.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<PostgresUrl, String> {
        text.parse().map_err(|error: PostgresError| error.to_string())
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = parsed("postgres://me:hidden@a:1,b:2/board?target_session_attrs=read-write");
        let url = url.expect("an address");
        assert_eq!(format!("{url} {url:?}"), "postgres://a:1,b:2/board postgres://a:1,b:2/board");
        let refused = parsed("postgres://me:hidden@a:port/board").expect_err("no port");
        assert!(!refused.contains("hidden"), "{refused}");
    }

    #[test]
    fn encryption_has_the_names_of_libpq() {
        let mode = |query: &str| {
            let url = parsed(&format!("postgres://a/b?{query}")).expect("an address");
            (url.config.get_ssl_mode(), url.encryption, url.roots)
        };
        assert_eq!(mode(""), (SslMode::Prefer, Encryption::AsAsked, None));
        assert_eq!(mode("sslmode=disable"), (SslMode::Disable, Encryption::AsAsked, None));
        let roots = Some(PathBuf::from("/etc/a b.pem"));
        let verified = mode("sslrootcert=/etc/a%20b.pem&sslmode=verify-full");
        assert_eq!(verified, (SslMode::Require, Encryption::Verified, roots));
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in [
            "",
            "mysql://a/b",
            "postgres://a/b?sslmode=allow",
            "postgres://a/b?x",
            "postgres:///b",
            "postgres://a/b?password=p",
            "postgres://me:hid@den@a/b",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
