//! HTTP client of one connection with little overhead, since it shares the processors with the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::Failure;

/// Longer than any answer takes unless something is wrong.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A connection that is kept.
pub struct Client {
    host: String,
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    /// The body of the last answer.
    body: Vec<u8>,
}

impl Client {
    pub fn connect(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let stream = BufReader::new(stream);
        Ok(Self { host: address.to_owned(), stream, request: Vec::new(), body: Vec::new() })
    }

    /// The bytes of a resource, and how long its answer took to the last of them.
    pub fn get(&mut self, path: &str) -> Result<(&[u8], Duration), Failure> {
        let begin = Instant::now();
        self.request.clear();
        write!(self.request, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host)?;
        self.exchange(path)?;
        Ok((&self.body, begin.elapsed()))
    }

    /// Sends a JSON document, and sees that it is taken.
    pub fn post(&mut self, path: &str, json: &str) -> Result<(), Failure> {
        self.request.clear();
        write!(self.request, "POST {path} HTTP/1.1\r\nHost: {}\r\n", self.host)?;
        self.request.extend_from_slice(b"Content-Type: application/json\r\n");
        write!(self.request, "Content-Length: {}\r\n\r\n{json}", json.len())?;
        self.exchange(path)
    }

    fn exchange(&mut self, path: &str) -> Result<(), Failure> {
        self.stream.get_mut().write_all(&self.request)?;
        let status = self.line()?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            chunked |= line == "transfer-encoding: chunked";
            if line.is_empty() {
                break;
            }
        }
        self.body.clear();
        if chunked {
            while self.chunk()? > 0 {}
        } else {
            self.read(length)?;
        }
        if status.starts_with("HTTP/1.1 2") {
            return Ok(());
        }
        Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&self.body)).into())
    }

    fn chunk(&mut self) -> Result<u64, Failure> {
        let bytes = u64::from_str_radix(&self.line()?, 16)?;
        self.read(bytes)?;
        self.line()?;
        Ok(bytes)
    }

    fn read(&mut self, bytes: u64) -> Result<(), Failure> {
        let read = self.stream.by_ref().take(bytes).read_to_end(&mut self.body)?;
        if u64::try_from(read)? == bytes { Ok(()) } else { Err("an answer was cut off".into()) }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the server closed the connection".into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
