//! TLS of the client.

use std::sync::Arc;

use tokio_rustls::TlsConnector;

use blackboard_roots::{Roots, RootsError};

/// Returns what opens TLS connections to servers whose certificates lead to these roots.
pub(super) fn connector(roots: &Roots) -> Result<TlsConnector, RootsError> {
    let mut config = roots.config()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
