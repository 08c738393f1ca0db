//! Notices to systemd, which starts the server with `Type=notify`: ready and stopping.
//!
//! A notice is one datagram to the socket that `$NOTIFY_SOCKET` names. Elsewhere the variable is absent, and nothing is
//! sent. The crate `sd-notify` 0.5 takes `@name` for a file, so it does not reach abstract addresses.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A change of the server's state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice {
    /// Requests are accepted.
    Ready,
    /// The server finishes open requests, and ends.
    Stopping,
}

impl Notice {
    /// Sends the notice. Without it systemd ends the service after its `TimeoutStartSec`, so a failure is logged.
    pub(crate) fn send(self) {
        if let Some(socket) = env::var_os("NOTIFY_SOCKET")
            && let Err(error) = self.send_to(&socket)
        {
            tracing::warn!(socket = %socket.display(), %error, "systemd was not notified");
        }
    }

    fn send_to(self, socket: &OsStr) -> io::Result<()> {
        let state: &[u8] = match self {
            Self::Ready => b"READY=1",
            Self::Stopping => b"STOPPING=1",
        };
        UnixDatagram::unbound()?.send_to_addr(state, &address(socket)?)?;
        Ok(())
    }
}

/// The address of a path, or on Linux of `@name`, an abstract one.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_encoded_bytes().strip_prefix(b"@") {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn notices_reach_a_socket_that_has_a_path() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        Notice::Ready.send_to(path.as_os_str()).unwrap();
        assert_eq!(received(&socket), b"READY=1");
        Notice::Stopping.send_to(path.as_os_str()).unwrap();
        assert_eq!(received(&socket), b"STOPPING=1");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn notices_reach_an_abstract_address() {
        use std::os::linux::net::SocketAddrExt as _;

        let name = format!("blackboard-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
        let socket = socket.unwrap();
        Notice::Ready.send_to(OsStr::new(&format!("@{name}"))).unwrap();
        assert_eq!(received(&socket), b"READY=1");
    }
}
