//! The control socket file, never reachable by another user.
//!
//! The socket is created in a directory that only its owner may enter, then moved to its place, where it replaces one
//! left by a crash. The lock of the data directory is held meanwhile, so nobody else answers there.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use blackboard_owner_files::{DIR_MODE, FILE_MODE};

/// The file name in the data directory.
pub const SOCKET: &str = "control.sock";

/// The directory in which the socket is created.
const NURSERY: &str = "control.new";

/// The longest path of a socket's address on every system; the shortest limit is 104 bytes.
const ADDRESS_BYTES_MAX: usize = 100;

/// The socket of a running server; its file is removed on drop.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Creates the socket of a data directory whose lock is held. Needs a runtime.
    ///
    /// # Errors
    ///
    /// The file system has no sockets, or the directory's path is too long and there is no `/proc`.
    pub fn bind(data: &Path) -> io::Result<Self> {
        let nursery = data.join(NURSERY);
        remove_nursery(&nursery)?;
        DirBuilder::new().mode(DIR_MODE).create(&nursery)?;
        let bound = bind_in(data, &nursery);
        remove_nursery(&nursery)?;
        Ok(Self { listener: UnixListener::from_std(bound?)?, path: data.join(SOCKET) })
    }

    /// Accepts the next connection.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "the control socket is left behind; the next start replaces it");
        }
    }
}

/// Connects to the server of a data directory.
///
/// # Errors
///
/// No server listens there.
pub fn connect(data: &Path) -> io::Result<net::UnixStream> {
    reach(data, SOCKET, |address| net::UnixStream::connect(address))
}

fn bind_in(data: &Path, nursery: &Path) -> io::Result<net::UnixListener> {
    let listener = reach(nursery, SOCKET, |address| net::UnixListener::bind(address))?;
    let made = nursery.join(SOCKET);
    fs::set_permissions(&made, Permissions::from_mode(FILE_MODE))?;
    listener.set_nonblocking(true)?;
    fs::rename(&made, data.join(SOCKET))?;
    Ok(listener)
}

fn remove_nursery(nursery: &Path) -> io::Result<()> {
    match fs::remove_dir_all(nursery) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Calls back with the address of a name in a directory, through the open directory if its path is too long.
fn reach<T>(dir: &Path, name: &str, using: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = dir.join(name);
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return using(&path);
    }
    let open = File::open(dir)?;
    using(&PathBuf::from(format!("/proc/self/fd/{}/{name}", open.as_raw_fd())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileTypeExt as _;

    use tempfile::TempDir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn only_its_owner_may_use_it_and_it_goes_with_the_server() {
        let dir = TempDir::new().expect("a directory");
        let socket = Socket::bind(dir.path()).expect("a socket");
        let path = dir.path().join(SOCKET);
        assert_eq!(mode(&path), 0o600);
        assert!(fs::metadata(&path).expect("it is there").file_type().is_socket());
        connect(dir.path()).expect("it answers");
        drop(socket);
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0, "something is left");
        connect(dir.path()).expect_err("nobody is there");
    }

    #[tokio::test]
    async fn one_that_a_crash_left_is_replaced() {
        let dir = TempDir::new().expect("a directory");
        let stale = dir.path().join(SOCKET);
        drop(net::UnixListener::bind(&stale).expect("a socket"));
        assert!(stale.exists());
        fs::create_dir(dir.path().join(NURSERY)).expect("made");
        fs::write(dir.path().join(NURSERY).join(SOCKET), "").expect("written");
        connect(dir.path()).expect_err("nobody is there");
        let _socket = Socket::bind(dir.path()).expect("a socket");
        connect(dir.path()).expect("it answers");
        assert!(!dir.path().join(NURSERY).exists());
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_for_an_address_will_do() {
        let dir = TempDir::new().expect("a directory");
        let long = dir.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&long).expect("made");
        let socket = Socket::bind(&long).expect("a socket");
        connect(&long).expect("it answers");
        drop(socket);
        assert_eq!(fs::read_dir(&long).expect("a directory").count(), 0, "something is left");
    }
}
