//! Requests of clients, drawn by chance, and their answers.

use std::future::Future;
use std::pin::Pin;

use super::*;
use blackboard_board::{
    Board, Edit, Key, Matches, PlanRequest, Priority, QuestionCommand, Rank, Rejected,
    RequestCommand, Screenshot, Seq, Test, Transaction, Version, Wanted, When,
};

/// The number of different images.
const IMAGES: u64 = 2;

#[derive(Clone)]
pub(super) enum Request {
    Write(Box<Write>, Vec<ImageBytes>),
    /// A fork of a session as it is, with the name of the terms.
    Fork(Box<Write>, SessionName),
    Purge(SessionName),
}

/// The answer to a request.
pub(super) enum Answer {
    Written(Reply),
    Forked {
        reply: Reply,
        source: Arc<Board>,
    },
    /// A history that begins at this revision.
    Purged {
        session: SessionName,
        id: Option<SessionId>,
        oldest: Revision,
    },
}

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Answer, ServiceError>>>>;

/// The outcome of a request, as its client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    UnderWay,
    /// Done; of this session and revision if it changed anything.
    Done(Option<Place>),
    /// Refused, for this reason.
    Refused(String),
    /// The client went away, the store failed, or the server crashed.
    InDoubt,
}

/// A commit. A repeat is told its revision alone.
pub(super) type Place = (Option<SessionId>, Revision);

pub(super) struct Op {
    /// In each of its commits, unless it has none.
    pub(super) word: Option<String>,
    pub(super) request: Request,
    pub(super) fate: Fate,
    /// True if an earlier try may have been stored.
    pub(super) was_in_doubt: bool,
}

impl Request {
    pub(super) fn key(&self) -> Option<&Key> {
        match self {
            Self::Write(write, _) => write.terms.key.as_ref(),
            Self::Fork(write, _) => write.terms.key.as_ref(),
            Self::Purge(_) => None,
        }
    }

    /// The session that it changes.
    pub(super) fn session(&self) -> &SessionName {
        match self {
            Self::Write(write, _) => &write.session,
            Self::Fork(write, _) => &write.session,
            Self::Purge(session) => session,
        }
    }

    pub(super) fn send(self, service: Service) -> Answering {
        let keep = self.key().map(|_| -> Keep {
            Arc::new(|receipt| Some(json(&receipt.board.revision().to_string())))
        });
        Box::pin(async move {
            match self {
                Self::Write(write, images) => {
                    service.write(*write, images, keep).await.map(Answer::Written)
                }
                Self::Fork(write, from) => {
                    let published = service.published(&from).await?;
                    let Some(Published { board, .. }) = published else {
                        let rejected = Rejected::NoSession { session: from };
                        return Err(ServiceError::Rejected { rejected, revision: None });
                    };
                    let to = service.at(write.session.as_str());
                    let reply = to.fork(write.terms, Arc::clone(&board), from, keep).await?;
                    Ok(Answer::Forked { reply, source: board })
                }
                Self::Purge(session) => {
                    let id = service.extent(&session)?.map(|extent| extent.session);
                    let oldest = service.at(session.as_str()).purge(None).await?;
                    Ok(Answer::Purged { session, id, oldest })
                }
            }
        })
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write(write, _) => write!(f, "{} {:?}", write.session, write.command),
            Self::Fork(write, from) => write!(f, "{} forked from {from}", write.session),
            Self::Purge(session) => write!(f, "{session} purged"),
        }
    }
}

impl Simulation {
    pub(super) fn op(&mut self, running: &Running) -> Op {
        // Long enough for no random bytes to have it.
        let word = format!("write-{:04}.", self.ops.len());
        let (request, has_word) = match self.chance.below(100) {
            0..=9 => self.fork_or_delete(running, &word),
            10..=15 => (Request::Purge(self.session()), false),
            16..=29 => (self.shoot(running, &word), true),
            _ => self.write(running, &word),
        };
        let word = has_word.then_some(word);
        Op { word, request, fate: Fate::UnderWay, was_in_doubt: false }
    }

    /// One of the names.
    pub(super) fn session(&mut self) -> SessionName {
        name(&format!("s{}", self.chance.below(SESSIONS)))
    }

    /// Forks a session to a name without one. If there is none, deletes one.
    fn fork_or_delete(&mut self, running: &Running, word: &str) -> (Request, bool) {
        let is_free = |name: &SessionName| running.service.extent(name).unwrap().is_none();
        let free: Vec<_> = names().filter(is_free).collect();
        let from = self.session();
        if free.is_empty() {
            let delete = Command::Session(SessionCommand::Delete);
            return (Request::Write(Box::new(write_to(from.as_str(), delete)), vec![]), false);
        }
        // The session and the terms alone count.
        let to = write_to(self.chance.one_of(&free).as_str(), Command::Transact(Box::default()));
        let is_keyed = self.chance.is(50);
        let to = if is_keyed { keyed(to, word, word) } else { to };
        (Request::Fork(Box::new(to), from), is_keyed)
    }

    fn shoot(&mut self, running: &Running, word: &str) -> Request {
        let bytes = format!("\u{89}PNG image {}", self.chance.below(IMAGES)).into_bytes();
        let metadata = format!(r#"{{"word":"{word}"}}"#);
        let metadata = Some(metadata.as_str());
        let screenshot = Screenshot::from_bytes("image/png", bytes, metadata, "").unwrap();
        let (item, images) = ImageBytes::split(screenshot);
        let session = self.session();
        let write = append(session.as_str(), LogName::Screenshots, vec![item]);
        let mut write = if self.chance.is(50) { keyed(write, word, word) } else { write };
        if self.chance.is(40) {
            write.terms.condition.matches = Some(self.version(running, &session));
        }
        Request::Write(Box::new(write), images)
    }

    fn write(&mut self, running: &Running, word: &str) -> (Request, bool) {
        let session = self.session();
        let (command, has_word) = self.command(word);
        let mut write = write_to(session.as_str(), command);
        if self.chance.is(30) {
            write = keyed(write, word, word);
        }
        if self.chance.is(40) {
            let agent = format!("a{}", self.chance.below(3));
            write.terms.author = Some(agent.parse().unwrap());
        }
        if self.chance.is(15) {
            write.terms.condition.matches = Some(self.version(running, &session));
        }
        (Request::Write(Box::new(write), vec![]), has_word)
    }

    /// A condition: the version of a session, or the one before.
    fn version(&mut self, running: &Running, session: &SessionName) -> Matches {
        let Some(extent) = running.service.extent(session).unwrap() else { return Matches::Any };
        let changed = Revision(extent.revision.0.saturating_sub(self.chance.below(2)));
        Matches::Versions(vec![Version { session: extent.session, changed }])
    }

    /// A plan, with some times that come within the simulation.
    fn plan(&mut self) -> PlanRequest {
        let not_before = self.chance.is(40).then(|| When::In(ttl("3s")));
        let deadline = self.chance.is(20).then(|| When::In(ttl("6s")));
        let priority = i64::try_from(self.chance.below(3)).unwrap() - 1;
        PlanRequest {
            after: Arc::default(),
            attempts: self.chance.is(50).then_some(2),
            priority: Priority::new(priority).unwrap(),
            not_before,
            deadline,
            review: self.chance.is(30),
        }
    }

    /// A command, and true if its commits carry the word.
    fn command(&mut self, word: &str) -> (Command, bool) {
        let text = format!(r#"{{"word":"{word}"}}"#);
        let place = format!("k{}", self.chance.below(3));
        let seq = Seq(1 + self.chance.below(4));
        let log = self.chance.one_of(&LogName::BOARD[..3]);
        let put = |ttl| Edit::Put { value: json(&text), ttl };
        let append = || Command::Log(log.clone(), LogCommand::Append { items: vec![item(&text)] });
        match self.chance.below(26) {
            0..=4 => (append(), true),
            5..=6 => (Command::State(path(&place), put(None)), true),
            7..=8 => (Command::State(path(&place), put(Some(ttl("5s")))), true),
            9 => (Command::State(path("count"), Edit::Add(json("1"))), false),
            10 => {
                let test = Test::Absent(path(&place), self.chance.is(50));
                let then = vec![append(), Command::State(path(&place), put(None))];
                let otherwise = vec![Command::State(path(&place), Edit::Remove), append()];
                let transaction = Transaction { tests: vec![test], then, otherwise };
                (Command::Transact(Box::new(transaction)), true)
            }
            11 => {
                let default = self.chance.is(50).then(|| "none".to_owned());
                (Command::Ask { items: vec![item(&text)], ttl: ttl("3s"), default }, true)
            }
            12 => (Command::Plan { items: vec![item(&text)], plan: self.plan() }, true),
            13..=14 => (Command::Request(seq, RequestCommand::Claim { ttl: ttl("4s") }), false),
            15 => {
                let result = Some(json(&text));
                (Command::Request(seq, RequestCommand::Finish { fence: None, result }), true)
            }
            16 => {
                (Command::Question(seq, QuestionCommand::Answer { answer: word.to_owned() }), true)
            }
            17 => (Command::Log(log, LogCommand::DeleteEntry { seq }), false),
            19 => (Command::Plan { items: vec![item(&text)], plan: self.plan() }, true),
            20 => {
                let (wanted, ttl) = (Wanted::default(), ttl("4s"));
                (Command::ClaimNext { wanted, from: Rank::FIRST, ttl }, false)
            }
            21..=22 => {
                let (reason, retry_in) = (Some(json(&text)), self.chance.is(50).then(|| ttl("2s")));
                (
                    Command::Request(seq, RequestCommand::Fail { fence: None, reason, retry_in }),
                    true,
                )
            }
            23 => {
                let reason = Some(json(&text));
                (Command::Request(seq, RequestCommand::Cancel { reason }), true)
            }
            24 => {
                let (accepted, reason) = (self.chance.is(50), Some(json(&text)));
                (
                    Command::Request(seq, RequestCommand::Judge { fence: None, accepted, reason }),
                    true,
                )
            }
            18 => (Command::Board(BoardCommand::Clear { state: self.chance.is(50) }), false),
            _ => (Command::Session(SessionCommand::Delete), false),
        }
    }
}
