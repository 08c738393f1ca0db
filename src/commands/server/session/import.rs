//! `blackboard import`

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::export::{SUFFIX, TOKENS};
use crate::board::{SessionName, TokenName};
use crate::cli::Failure;
use crate::commands::server::directory::{Answering, Directory, Unanswered};
use crate::commands::server::progress::Bar;
use crate::control::{AskError, CarriedToken, ImportedToken, Line, Request};
use crate::error_chain::Chain;

/// The size of one read.
const PIECE_BYTES: usize = 64 << 10;

/// Import an archive as a new session, completely or not at all
///
/// Reads standard input without --from. The session's name must be free. The new session starts without claims and
/// idempotency keys.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard import copy --from demo.ndjson\n\
\x20 blackboard import --all --from archives --create --data new")]
pub(in crate::commands) struct Import {
    /// Name of the new session
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    session: Option<SessionName>,

    /// Import every file in the directory --from that 'export --all' wrote, including the tokens
    #[arg(long, env = "BLACKBOARD_IMPORT_ALL", requires = "from")]
    all: bool,

    /// File to read; with --all a directory
    #[arg(long, env = "BLACKBOARD_IMPORT_FROM", value_name = "PATH")]
    from: Option<PathBuf>,

    /// Create the data directory if it holds no store
    #[arg(long, env = "BLACKBOARD_IMPORT_CREATE")]
    create: bool,

    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, thiserror::Error)]
enum Unimported {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read the archive")]
    Input(#[source] io::Error),
    #[error("{0:?} is not a file name that 'export --all' writes")]
    Name(String),
    #[error("the server's response cannot be read; it may be running another version")]
    Unreadable(#[source] serde_json::Error),
    #[error("the line is not a token that 'export --all' writes")]
    Token(#[source] serde_json::Error),
    #[error("{0} files were not imported")]
    Some(usize),
}

/// Facts about an imported session.
#[derive(Deserialize)]
struct Made {
    revision: u64,
}

impl Import {
    pub(in crate::commands) fn run(self) -> Result<(), Failure> {
        self.import().map_err(Failure::failed)
    }

    fn import(self) -> Result<(), Unimported> {
        self.directory.present_or(self.create)?;
        let answering = self.directory.answering()?;
        match (self.session, self.from) {
            (Some(session), Some(from)) => {
                let bar =
                    Bar::of_bytes(session.as_str(), fs::metadata(&from).ok().map(|it| it.len()));
                from_file(&answering, &session, &from, &bar)
            }
            (Some(session), None) => {
                // The terminal shows what is typed.
                let bar = match io::stdin().is_terminal() {
                    true => Bar::hidden(),
                    false => Bar::of_bytes(session.as_str(), None),
                };
                take_in(&answering, &session, &mut io::stdin().lock(), &bar)
            }
            (None, from) => all(&answering, &from.unwrap_or_default()),
        }
    }
}

/// Imports each file as its session; a failure does not stop the others.
fn all(answering: &Answering, dir: &Path) -> Result<(), Unimported> {
    let mut failed = 0;
    let files = files(dir).map_err(|source| Unimported::Read { path: dir.to_owned(), source })?;
    let length = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    let bar = Bar::of_bytes("archives", Some(files.iter().map(length).sum()));
    let mut end = 0;
    for path in files {
        end += length(&path);
        let imported = session_of(&path).and_then(|name| from_file(answering, &name, &path, &bar));
        // A refused archive was not read to its end.
        bar.move_to(end);
        if let Err(error) = imported {
            bar.note(format_args!("error: {}: {}", path.display(), Chain(&error)));
            failed += 1;
        }
    }
    failed += tokens(answering, &dir.join(TOKENS), &bar)?;
    if failed == 0 { Ok(()) } else { Err(Unimported::Some(failed)) }
}

/// Imports the tokens of a directory, if it has any. Returns the number of those that were refused.
fn tokens(answering: &Answering, from: &Path, bar: &Bar) -> Result<usize, Unimported> {
    let lines = match fs::read_to_string(from) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(source) => return Err(Unimported::Read { path: from.to_owned(), source }),
    };
    let mut failed = 0;
    for (number, line) in lines.lines().enumerate() {
        let place = || format!("{}, line {}", from.display(), number + 1);
        match token(answering, line) {
            Ok(Some(name)) => bar.note(format_args!("imported token {name}")),
            Ok(None) => bar.note(format_args!("skipped {}: the token already exists", place())),
            Err(error) => {
                bar.note(format_args!("error: {}: {}", place(), Chain(&error)));
                failed += 1;
            }
        }
    }
    Ok(failed)
}

fn token(answering: &Answering, line: &str) -> Result<Option<TokenName>, Unimported> {
    let carried: CarriedToken = serde_json::from_str(line).map_err(Unimported::Token)?;
    let mut asking = answering.ask(&Request::ImportToken(carried))?;
    loop {
        if let Line::Done(told) = asking.line()? {
            let imported: ImportedToken =
                serde_json::from_str(&told).map_err(Unimported::Unreadable)?;
            return Ok(imported.name);
        }
    }
}

fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.to_string_lossy().ends_with(SUFFIX));
    paths.sort();
    Ok(paths)
}

fn session_of(path: &Path) -> Result<SessionName, Unimported> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plain = name.strip_suffix(SUFFIX).and_then(|encoded| {
        let decoded = percent_decode_str(encoded).decode_utf8().ok()?;
        decoded.parse().ok()
    });
    plain.ok_or(Unimported::Name(name))
}

fn from_file(
    answering: &Answering,
    session: &SessionName,
    from: &Path,
    bar: &Bar,
) -> Result<(), Unimported> {
    let mut file =
        File::open(from).map_err(|source| Unimported::Read { path: from.to_owned(), source })?;
    take_in(answering, session, &mut file, bar)
}

fn take_in(
    answering: &Answering,
    session: &SessionName,
    archive: &mut impl Read,
    bar: &Bar,
) -> Result<(), Unimported> {
    let mut asking = answering.ask(&Request::Import { session: session.clone() })?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = archive.read(&mut piece).map_err(Unimported::Input)?;
        let bytes = piece.get(..length).unwrap_or_default();
        if bytes.is_empty() || !asking.send(bytes)? {
            break;
        }
        bar.advance(bytes.len() as u64);
    }
    asking.end()?;
    loop {
        if let Line::Done(told) = asking.line()? {
            let made: Made = serde_json::from_str(&told).map_err(Unimported::Unreadable)?;
            bar.note(format_args!("imported {session} at revision {}", made.revision));
            return Ok(());
        }
    }
}
