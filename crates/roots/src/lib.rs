//! Root certificates: those that a server's certificate must lead to.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The maximum size of a file of root certificates, in bytes.
pub const CA_BYTES_MAX: u64 = 4 << 20;

/// The origin of the root certificates.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The operating system's, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    System,
    /// Only those of a PEM file: nobody else can then vouch for the server.
    File(PathBuf),
}

/// A failure to load root certificates.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The file cannot be read.
    #[error("cannot read root certificates from {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is too large.
    #[error("{} has more than {CA_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not PEM.
    #[error("{} is not PEM", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: pem::Error,
    },
    /// A certificate of the file cannot be a root.
    #[error("{} has an invalid certificate", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
    /// The file holds no certificate.
    #[error("{} holds no certificate; a PEM file has -----BEGIN CERTIFICATE----- lines", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The system has no usable certificates.
    #[error(
        "the system has no root certificates; install ca-certificates, or give a file with --ca"
    )]
    NoneInSystem,
    /// The protocol versions are not supported.
    #[error("TLS cannot be set up")]
    Setup(#[from] rustls::Error),
}

impl Roots {
    /// Returns a client's side of TLS that trusts these roots alone.
    ///
    /// # Errors
    ///
    /// [`RootsError`].
    pub fn config(&self) -> Result<ClientConfig, RootsError> {
        let roots = match self {
            Self::System => of_system()?,
            Self::File(path) => of_file(path)?,
        };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions()?.with_root_certificates(roots);
        Ok(config.with_no_client_auth())
    }
}

fn of_system() -> Result<RootCertStore, RootsError> {
    let mut roots = RootCertStore::empty();
    // Systems carry a few certificates that cannot be read; the others are what counts.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(RootsError::NoneInSystem) } else { Ok(roots) }
}

fn of_file(path: &Path) -> Result<RootCertStore, RootsError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(CA_BYTES_MAX + 1).read_to_end(&mut text))
        .map_err(|source| RootsError::Unreadable { path: path.to_owned(), source })?;
    if text.len() as u64 > CA_BYTES_MAX {
        return Err(RootsError::TooLarge { path: path.to_owned() });
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate
            .map_err(|source| RootsError::Malformed { path: path.to_owned(), source })?;
        roots
            .add(certificate)
            .map_err(|source| RootsError::Invalid { path: path.to_owned(), source })?;
    }
    if roots.is_empty() { Err(RootsError::Empty { path: path.to_owned() }) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_of_roots_is_read_or_says_why_not() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ca.pem");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            of_file(&path)
        };
        let ca = include_str!("../../../tests/tls/ca.pem");
        assert_eq!(read(ca).unwrap().len(), 1);
        assert_eq!(read(&format!("a comment\n{ca}{ca}")).unwrap().len(), 2);
        assert!(matches!(read("nothing"), Err(RootsError::Empty { .. })));
        let cut = ca.get(..ca.len() / 2).unwrap();
        assert!(matches!(read(cut), Err(RootsError::Malformed { .. })));
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(read(empty), Err(RootsError::Invalid { .. })));
        let large = "\n".repeat(usize::try_from(CA_BYTES_MAX).unwrap() + 1);
        assert!(matches!(read(&large), Err(RootsError::TooLarge { .. })));
        assert!(matches!(of_file(home.path()), Err(RootsError::Unreadable { .. })));
    }
}
