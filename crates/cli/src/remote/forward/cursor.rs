//! The cursor file: how far a receiver has acknowledged, for another run to go on from.
//!
//! The file is whole whenever a process ends: it is written beside, synced, and renamed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process;

use serde::{Deserialize, Serialize};

use super::stopped::Stopped;
use crate::connection::foreign;
use crate::system::{draft, sync_parent};

/// The maximum size of the file, in bytes.
pub(super) const CURSOR_BYTES_MAX: u64 = 1 << 20;

/// The file, if one was named.
#[derive(Debug)]
pub(super) struct CursorFile(pub(super) Option<PathBuf>);

/// The contents of the file.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Cursor {
    Events(Position),
    Questions(Delivered),
    Attention(Watched),
}

/// The last revision of a session up to which all events were acknowledged.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Position {
    session: String,
    revision: u64,
}

/// The ids of the open questions that were acknowledged.
#[derive(Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Delivered {
    questions: BTreeSet<String>,
}

/// What of an agent's attention was delivered.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Watched {
    session: String,
    agent: String,
    /// The revision up to which claimable requests and answers were delivered.
    pub(super) after: u64,
    /// The keys of what else was delivered and may wait still.
    pub(super) delivered: BTreeSet<String>,
}

impl Watched {
    pub(super) fn new(session: &str, agent: &str, after: Option<u64>) -> Self {
        let (session, agent) = (session.to_owned(), agent.to_owned());
        Self { session, agent, after: after.unwrap_or_default(), delivered: BTreeSet::new() }
    }
}

impl Cursor {
    /// Returns what the cursor is of, for people.
    fn subject(&self) -> String {
        match self {
            Self::Events(Position { session, .. }) => format!("session {}", foreign(session)),
            Self::Questions(_) => "questions".to_owned(),
            Self::Attention(Watched { session, agent, .. }) => {
                format!("agent {} of session {}", foreign(agent), foreign(session))
            }
        }
    }
}

impl CursorFile {
    /// Reads the last revision of a session.
    pub(super) fn revision(&self, session: &str) -> Result<Option<u64>, Stopped> {
        match self.read()? {
            None => Ok(None),
            Some(Cursor::Events(position)) if position.session == session => {
                Ok(Some(position.revision))
            }
            Some(other) => Err(self.other(&other)),
        }
    }

    pub(super) fn write_revision(&self, session: &str, revision: u64) -> Result<(), Stopped> {
        self.write(&Cursor::Events(Position { session: session.to_owned(), revision }))
    }

    /// Reads the ids of questions.
    pub(super) fn questions(&self) -> Result<BTreeSet<String>, Stopped> {
        match self.read()? {
            None => Ok(BTreeSet::new()),
            Some(Cursor::Questions(Delivered { questions })) => Ok(questions),
            Some(other) => Err(self.other(&other)),
        }
    }

    pub(super) fn write_questions(&self, questions: &BTreeSet<String>) -> Result<(), Stopped> {
        self.write(&Cursor::Questions(Delivered { questions: questions.clone() }))
    }

    /// Reads what of an agent's attention was delivered.
    pub(super) fn watched(&self, session: &str, agent: &str) -> Result<Option<Watched>, Stopped> {
        match self.read()? {
            None => Ok(None),
            Some(Cursor::Attention(watched))
                if (watched.session.as_str(), watched.agent.as_str()) == (session, agent) =>
            {
                Ok(Some(watched))
            }
            Some(other) => Err(self.other(&other)),
        }
    }

    pub(super) fn write_watched(&self, watched: &Watched) -> Result<(), Stopped> {
        self.write(&Cursor::Attention(watched.clone()))
    }

    fn other(&self, other: &Cursor) -> Stopped {
        let (path, other) = (self.0.clone().unwrap_or_default(), other.subject());
        Stopped::OtherCursor { path, other }
    }

    fn read(&self) -> Result<Option<Cursor>, Stopped> {
        let Some(path) = self.0.clone() else { return Ok(None) };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Stopped::Unreadable { path, source }),
        };
        let mut text = Vec::new();
        if let Err(source) = file.take(CURSOR_BYTES_MAX).read_to_end(&mut text) {
            return Err(Stopped::Unreadable { path, source });
        }
        serde_json::from_slice(&text).map(Some).map_err(|_| Stopped::NoCursor { path })
    }

    fn write(&self, cursor: &Cursor) -> Result<(), Stopped> {
        let Some(path) = &self.0 else { return Ok(()) };
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}", process::id()));
        let temporary = PathBuf::from(temporary);
        let written = serde_json::to_string(cursor)
            .map_err(io::Error::other)
            .and_then(|text| {
                let mut file = draft(&temporary)?;
                writeln!(file, "{text}").and_then(|()| file.sync_all())
            })
            .and_then(|()| fs::rename(&temporary, path))
            .and_then(|()| sync_parent(path));
        written.map_err(|source| {
            fs::remove_file(&temporary).ok();
            Stopped::Unwritten { path: path.clone(), source }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let home = tempfile::tempdir().unwrap();
        let file = CursorFile(Some(home.path().join("cursor")));
        assert_eq!(file.revision("a").unwrap(), None);
        file.write_revision("a", 7).unwrap();
        file.write_revision("a", 8).unwrap();
        assert_eq!(file.revision("a").unwrap(), Some(8));
        assert!(matches!(file.revision("b"), Err(Stopped::OtherCursor { .. })));
        assert!(matches!(file.questions(), Err(Stopped::OtherCursor { .. })));
        let ids = BTreeSet::from(["msg_1".to_owned()]);
        file.write_questions(&ids).unwrap();
        assert_eq!(file.questions().unwrap(), ids);
        assert!(matches!(file.revision("a"), Err(Stopped::OtherCursor { .. })));
        let mut watched = Watched::new("a", "A", Some(7));
        watched.delivered.insert("messages 3 x".to_owned());
        assert!(matches!(file.watched("a", "A"), Err(Stopped::OtherCursor { .. })));
        file.write_watched(&watched).unwrap();
        assert_eq!(file.watched("a", "A").unwrap(), Some(watched));
        let Err(Stopped::OtherCursor { other, .. }) = file.watched("a", "B") else {
            panic!("it is the cursor of another agent")
        };
        assert_eq!(other, "agent A of session a");
        assert!(matches!(file.questions(), Err(Stopped::OtherCursor { .. })));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_something_else_stays_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cursor");
        let file = CursorFile(Some(path.clone()));
        let long = format!("{}{{\"questions\":[]}}", " ".repeat(1 << 20));
        for text in ["", "7", "{}", "{\"session\":\"a\",\"revision\":1,\"more\":1}", &long] {
            fs::write(&path, text).unwrap();
            assert!(matches!(file.revision("a"), Err(Stopped::NoCursor { .. })), "{text}");
        }
        let directory = CursorFile(Some(home.path().to_owned()));
        assert!(matches!(directory.revision("a"), Err(Stopped::Unreadable { .. })));
        let nowhere = CursorFile(Some(home.path().join("absent/cursor")));
        assert!(matches!(nowhere.write_revision("a", 1), Err(Stopped::Unwritten { .. })));
    }
}
