//! Proxy between a command and its server, which withholds one answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A proxy. The first answer to a request on this route reaches the command never.
pub(crate) struct Proxy {
    pub(crate) url: String,
}

impl Proxy {
    pub(crate) fn start(server: &str, route: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = server.trim_start_matches("http://").to_owned();
        let has_withheld = Arc::new(AtomicBool::new(false));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server));
                // The server may be gone at the end of the test.
                let Ok(server) = server else { return };
                connect(&client, &server, route, &has_withheld);
            }
        });
        Self { url }
    }
}

fn connect(
    client: &TcpStream,
    server: &TcpStream,
    route: &'static str,
    has_withheld: &Arc<AtomicBool>,
) {
    let is_silent = Arc::new(AtomicBool::new(false));
    let (silent, has_withheld) = (Arc::clone(&is_silent), Arc::clone(has_withheld));
    copy(client, server, move |request| {
        let is_first = contains(request, route) && !has_withheld.swap(true, Ordering::SeqCst);
        // It is noted before the request goes on, so before there is an answer.
        is_silent.fetch_or(is_first, Ordering::SeqCst);
        true
    });
    copy(server, client, move |_| !silent.load(Ordering::SeqCst));
}

/// Copies what may pass, until either side ends.
fn copy(from: &TcpStream, to: &TcpStream, may_pass: impl Fn(&[u8]) -> bool + Send + 'static) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let mut piece = [0; 8 << 10];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if may_pass(&piece[..count]) && to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Both).ok();
    });
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
