//! `blackboard healthcheck`: one GET over a plain socket. A container needs no other program.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs},
    time::Duration,
};

use clap::Args;

use crate::cli::Failure;
use crate::config::{LISTEN_DEFAULT, listen_address};

/// The timeout of the connection, and of each read and write.
const TIMEOUT: Duration = Duration::from_secs(3);

/// An upper bound for a status line.
const LINE_BYTES_MAX: u64 = 1024;

/// Ask a running server whether it is ready; exit 0 if so, else 1
#[derive(Args, Debug)]
pub(in crate::commands) struct Healthcheck {
    /// URL to request; by default /readyz of the server on this machine that listens on --listen
    #[arg(long, env = "BLACKBOARD_HEALTHCHECK_URL", value_name = "URL")]
    url: Option<String>,

    /// Address and port of the server's --listen
    #[arg(long, env = "BLACKBOARD_LISTEN", value_name = "ADDR:PORT", default_value = LISTEN_DEFAULT,
          value_parser = listen_address)]
    listen: SocketAddr,
}

#[derive(Debug, thiserror::Error)]
enum Unhealthy {
    #[error("{0:?} is not a URL such as http://127.0.0.1:8733/readyz")]
    Url(String),
    #[error("cannot reach {url}")]
    Unreachable { url: String, source: io::Error },
    #[error("{url} returned {answer:?} instead of 200")]
    Status { url: String, answer: String },
}

impl Healthcheck {
    pub(super) fn run(self) -> Result<(), Failure> {
        let url = self.url.unwrap_or_else(|| url_of(self.listen));
        check(url).map_err(Failure::failed)
    }
}

/// The URL at which a server that listens on `listen` is reached from its own machine.
fn url_of(mut listen: SocketAddr) -> String {
    if listen.ip().is_unspecified() {
        listen.set_ip(match listen.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{listen}/readyz")
}

fn check(url: String) -> Result<(), Unhealthy> {
    let Some((authority, path)) = parts(&url) else {
        return Err(Unhealthy::Url(url));
    };
    match get(authority, path) {
        Ok(answer) if answer.split(' ').nth(1) == Some("200") => Ok(()),
        Ok(answer) => Err(Unhealthy::Status { url, answer }),
        Err(source) => Err(Unhealthy::Unreachable { url, source }),
    }
}

/// The authority and the path of a plain URL.
fn parts(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let is_plain = url.bytes().all(|b| b.is_ascii_graphic());
    let path = if path.is_empty() { "/" } else { path };
    (is_plain && !authority.is_empty()).then_some((authority, path))
}

/// The status line of the answer.
fn get(authority: &str, path: &str) -> io::Result<String> {
    let mut stream = connect(authority)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn connect(authority: &str) -> io::Result<TcpStream> {
    let has_port = authority.rsplit(':').next().is_some_and(|port| {
        authority.contains(':') && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
    });
    let with_port = format!("{authority}:80");
    let address = if has_port { authority } else { &with_port };
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// Answers one connection with these bytes.
    fn answering(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a head");
                head.extend(byte);
            }
            stream.write_all(answer.as_bytes()).expect("written");
        });
        format!("http://{address}/readyz")
    }

    #[test]
    fn a_200_is_healthy_and_nothing_else() {
        assert!(check(answering("HTTP/1.1 200 OK\r\n\r\n")).is_ok());
        for answer in ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "200", ""] {
            let error = check(answering(answer)).expect_err(answer);
            assert!(matches!(error, Unhealthy::Status { .. }), "{error}");
        }
    }

    #[test]
    fn nobody_there_is_unhealthy() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = url_of(listener.local_addr().expect("an address"));
        drop(listener);
        let error = check(url).expect_err("refused");
        assert!(matches!(error, Unhealthy::Unreachable { .. }), "{error}");
    }

    #[test]
    fn the_address_follows_the_one_to_listen_on() {
        for (listen, url) in [
            ("127.0.0.1:8733", "http://127.0.0.1:8733/readyz"),
            ("0.0.0.0:80", "http://127.0.0.1:80/readyz"),
            ("[::]:80", "http://[::1]:80/readyz"),
            ("10.0.0.7:80", "http://10.0.0.7:80/readyz"),
        ] {
            assert_eq!(url_of(listen.parse().expect("an address")), url);
        }
    }

    #[test]
    fn only_a_plain_url_is_asked() {
        assert_eq!(parts("http://a:1"), Some(("a:1", "/")));
        assert_eq!(parts("http://[::1]/x?y"), Some(("[::1]", "/x?y")));
        for url in ["https://a/", "http:///x", "a/b", "http://a/\r\nX: y"] {
            assert_eq!(parts(url), None, "{url}");
        }
    }
}
