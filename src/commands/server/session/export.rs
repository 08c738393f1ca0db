//! `blackboard export`

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use clap::Args;
use serde::Deserialize;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::board::SessionName;
use crate::cli::Failure;
use crate::commands::server::directory::{Answering, Directory, Unanswered};
use crate::commands::server::progress::Bar;
use crate::control::{AskError, Line, Request, Sought};
use crate::error_chain::Chain;
use crate::owner_files::{FILE_MODE, sync_parent};
use crate::store::{StoreError, vacant_dir, vacant_file};

/// The suffix of the files of `--all`.
pub(super) const SUFFIX: &str = ".ndjson";

/// The file of `--all` that has the tokens: a JSON text a line.
pub(super) const TOKENS: &str = "tokens.jsonl";

/// The longest file name of most file systems.
const FILE_NAME_BYTES_MAX: usize = 255;

/// Bytes that a file name keeps unescaped.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Export a session, or all of them, as archives with their history
///
/// An archive is what GET /v1/sessions/SESSION/archive returns. Writes to standard output without --to. A file
/// appears only once complete. The archive of a damaged session has the readable part; the damage is reported, and
/// the exit code is 1. The data directory is not changed: without a running server, values that have expired since
/// are still included.
///
/// --all exports the tokens too, if any: their file has hashes instead of secrets.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard export demo --to demo.ndjson\n\
\x20 blackboard export demo | gzip > demo.ndjson.gz\n\
\x20 blackboard export --all --to archives")]
pub(in crate::commands) struct Export {
    /// Session to export
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    session: Option<SessionName>,

    /// Export every session, each to its own file in the directory --to
    #[arg(long, env = "BLACKBOARD_EXPORT_ALL", requires = "to")]
    all: bool,

    /// File to create, or with --all a directory; an existing path is rejected, but --all accepts an empty directory
    #[arg(long, env = "BLACKBOARD_EXPORT_TO", value_name = "NEWPATH")]
    to: Option<PathBuf>,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum Unexported {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Occupied(#[from] StoreError),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the archive")]
    Output(#[source] io::Error),
    #[error("the session's name is too long for a file; export the session alone")]
    LongName,
    #[error("the server's response cannot be read; it may be running another version")]
    Unreadable(#[source] serde_json::Error),
    #[error(
        "the session is damaged: its archive goes up to revision {revision}, and later revisions up to {head} are \
         unreadable"
    )]
    Cut { revision: u64, head: u64 },
    #[error("{0} sessions were not exported, or only in part")]
    Some(usize),
}

/// Facts about a written archive.
#[derive(Deserialize)]
struct Reached {
    revision: u64,
    /// The last revision of a damaged session.
    head: Option<u64>,
}

impl Reached {
    /// Fails unless the archive has the whole session.
    fn whole(self) -> Result<(), Unexported> {
        let Self { revision, head } = self;
        head.map_or(Ok(()), |head| Err(Unexported::Cut { revision, head }))
    }
}

impl Export {
    pub(in crate::commands) fn run(self) -> Result<(), Failure> {
        self.export().map_err(Failure::failed)
    }

    fn export(self) -> Result<(), Unexported> {
        self.directory.present_or(false)?;
        match &self.to {
            Some(to) if self.all => vacant_dir(to)?,
            Some(to) => vacant_file(to)?,
            None => {}
        }
        let answering = self.directory.telling()?;
        match (self.session, self.to) {
            (Some(session), Some(to)) => {
                let bar = Bar::of_bytes(session.as_str(), None);
                to_file(&answering, session, &to, &bar)
            }
            (Some(session), None) => {
                // The archive itself would run into the bar.
                let bar = match io::stdout().is_terminal() {
                    true => Bar::hidden(),
                    false => Bar::of_bytes(session.as_str(), None),
                };
                let mut out = io::stdout().lock();
                let reached = copy(&answering, session, &mut out, &bar)?;
                out.flush().map_err(Unexported::Output)?;
                reached.whole()
            }
            (None, to) => all(&answering, &to.unwrap_or_default()),
        }
    }
}

/// Exports each session to its file; a failure does not stop the others.
fn all(answering: &Answering, dir: &Path) -> Result<(), Unexported> {
    let unwritten = |source| Unexported::Write { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(unwritten)?;
    let mut failed = 0;
    let (sessions, unseen) = (names(answering)?, Bar::hidden());
    let bar = Bar::of_units("sessions", sessions.len());
    for session in sessions {
        let name = file_name(&session);
        let exported = match name {
            Some(name) => to_file(answering, session.clone(), &dir.join(name), &unseen),
            None => Err(Unexported::LongName),
        };
        match exported {
            Ok(()) => bar.note(format_args!("exported {session}")),
            Err(Unexported::Ask(AskError::Failed { code, .. })) if code == "session-not-found" => {
                bar.note(format_args!("skipped {session}: deleted meanwhile"));
            }
            Err(error) => {
                bar.note(format_args!("error: {session}: {}", Chain(&error)));
                failed += 1;
            }
        }
        bar.advance(1);
    }
    let tokens = tokens(answering, &dir.join(TOKENS))?;
    if tokens > 0 {
        bar.note(format_args!("exported {tokens} tokens"));
    }
    if failed == 0 { Ok(()) } else { Err(Unexported::Some(failed)) }
}

/// Writes the stored form of all tokens, and returns their number. Without tokens there is no file.
fn tokens(answering: &Answering, to: &Path) -> Result<usize, Unexported> {
    let mut asking = answering.ask(&Request::ExportTokens {})?;
    let (mut lines, mut count) = (Vec::new(), 0);
    while let Line::Part(line) = asking.line()? {
        lines.extend_from_slice(&line);
        count += 1;
    }
    if count == 0 {
        return Ok(0);
    }
    let write = || {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(to)?;
        file.write_all(&lines)?;
        file.sync_all()?;
        sync_parent(to)
    };
    write().map_err(|source| Unexported::Write { path: to.to_owned(), source })?;
    Ok(count)
}

fn names(answering: &Answering) -> Result<Vec<SessionName>, Unexported> {
    let mut asking = answering.ask(&Request::Sessions {})?;
    let mut names = Vec::new();
    while let Line::Part(line) = asking.line()? {
        let sought: Sought = serde_json::from_slice(&line).map_err(Unexported::Unreadable)?;
        names.push(sought.session);
    }
    Ok(names)
}

fn file_name(session: &SessionName) -> Option<String> {
    let name = format!("{}{SUFFIX}", utf8_percent_encode(session.as_str(), PLAIN));
    (name.len() <= FILE_NAME_BYTES_MAX).then_some(name)
}

/// Renames the file to its final name once it is synced.
fn to_file(
    answering: &Answering,
    session: SessionName,
    to: &Path,
    bar: &Bar,
) -> Result<(), Unexported> {
    let mut temporary = to.as_os_str().to_owned();
    temporary.push(format!(".{}", process::id()));
    let temporary = PathBuf::from(temporary);
    let unwritten = |source| Unexported::Write { path: to.to_owned(), source };
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(FILE_MODE);
    let file = options.open(&temporary).map_err(unwritten)?;
    let written = write_synced(answering, session, &file, bar)
        .and_then(|reached| fs::rename(&temporary, to).map(|()| reached).map_err(unwritten))
        .and_then(|reached| sync_parent(to).map(|()| reached).map_err(unwritten));
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written?.whole()
}

fn write_synced(
    answering: &Answering,
    session: SessionName,
    file: &File,
    bar: &Bar,
) -> Result<Reached, Unexported> {
    let mut out = BufWriter::new(file);
    let reached = copy(answering, session, &mut out, bar)?;
    out.flush().and_then(|()| file.sync_all()).map_err(Unexported::Output)?;
    Ok(reached)
}

fn copy(
    answering: &Answering,
    session: SessionName,
    out: &mut impl Write,
    bar: &Bar,
) -> Result<Reached, Unexported> {
    let mut asking = answering.ask(&Request::Export { session })?;
    loop {
        match asking.line()? {
            Line::Part(line) => {
                out.write_all(&line).map_err(Unexported::Output)?;
                bar.advance(line.len() as u64);
            }
            Line::Done(told) => {
                return serde_json::from_str(&told).map_err(Unexported::Unreadable);
            }
        }
    }
}
