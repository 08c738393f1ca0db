//! Receiver of webhooks on loopback, which checks each signature and answers as instructed.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver as Queue, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::DEADLINE;

/// The secret that both sides have.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A message whose signature was right.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) target: String,
    pub(crate) id: String,
    pub(crate) seconds: u64,
    pub(crate) body: Value,
}

impl Message {
    pub(crate) fn revision(&self) -> u64 {
        self.body["data"]["revision"].as_u64().expect("a revision")
    }
}

/// The answer to one message.
pub(crate) enum Answer {
    /// A status line and headers.
    Head(&'static str),
    /// The head that comes, or the end of the connection if none does.
    Later(Queue<&'static str>),
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    messages: Queue<Message>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let url = format!("http://{}/hook?key=hidden", listener.local_addr().unwrap());
        let (sender, messages) = channel();
        let answers = Arc::<Mutex<VecDeque<Answer>>>::default();
        let of_thread = Arc::clone(&answers);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (sender, answers) = (sender.clone(), Arc::clone(&of_thread));
                thread::spawn(move || take(stream, &sender, &answers));
            }
        });
        Self { url, messages, answers }
    }

    /// Answers the next messages with these heads, and those after them with 204.
    pub(crate) fn answer(&self, heads: &[&'static str]) {
        self.answers.lock().unwrap().extend(heads.iter().map(|head| Answer::Head(head)));
    }

    /// Holds the answer to the next message until it is sent.
    pub(crate) fn hold(&self) -> Sender<&'static str> {
        let (sender, answer) = channel();
        self.answers.lock().unwrap().push_back(Answer::Later(answer));
        sender
    }

    pub(crate) fn message(&self) -> Message {
        self.messages.recv_timeout(DEADLINE).expect("a message")
    }

    /// Whether every message has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.try_recv().is_err()
    }
}

/// Reads messages of a connection until it ends.
fn take(stream: TcpStream, messages: &Sender<Message>, answers: &Mutex<VecDeque<Answer>>) {
    let mut reader = BufReader::new(stream);
    while let Some(message) = read(&mut reader) {
        messages.send(message).ok();
        let answer = answers.lock().unwrap().pop_front();
        let head = match answer.unwrap_or(Answer::Head("204 No Content")) {
            Answer::Head(head) => head,
            Answer::Later(head) => match head.recv_timeout(DEADLINE) {
                Ok(head) => head,
                Err(_) => return,
            },
        };
        let length = if head.starts_with("204") { "" } else { "Content-Length: 4\r\n" };
        let body = if length.is_empty() { "" } else { "body" };
        let answer = format!("HTTP/1.1 {head}\r\n{length}\r\n{body}");
        reader.get_mut().write_all(answer.as_bytes()).ok();
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Message> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let found = lines.iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        found.unwrap_or_else(|| panic!("no {name} in {lines:?}"))
    };
    let mut body = vec![0; header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    assert_eq!(header("content-type"), "application/json");
    let (id, seconds) = (header("webhook-id"), header("webhook-timestamp"));
    let key = STANDARD.decode(SECRET.trim_start_matches("whsec_")).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(&body);
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header("webhook-signature"), signature);
    let target = lines[0].split(' ').nth(1).unwrap().to_owned();
    let body = serde_json::from_slice(&body).unwrap();
    Some(Message { target, id, seconds: seconds.parse().unwrap(), body })
}
