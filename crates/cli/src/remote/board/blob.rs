//! `blackboard blob`: bytes that items and values name by their digest.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use serde::Deserialize;

use crate::Failure;
use crate::remote::access::Access;
use crate::remote::input;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::{blob_url, session_url};
use blackboard_board::{Digest, SessionName};

/// Download or upload the bytes that an item names by {"$blob": …}
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard blob put demo report.pdf --media-type application/pdf\n\
\x20 blackboard blob get demo e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 > a.pdf")]
pub struct Blob {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(Get),
    Put(Put),
}

/// Download a blob
#[derive(Args, Debug)]
struct Get {
    /// Session of the blob
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// SHA-256 of the bytes, in hexadecimal, as in {"$blob": …}
    #[arg(value_name = "SHA256", value_parser = digest)]
    sha256: Digest,

    /// File to write the bytes to; without it they go to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    access: Access,
}

/// Upload a file as a blob
///
/// Prints the SHA-256 that names it. A blob that nothing refers to is deleted after an hour.
#[derive(Args, Debug)]
struct Put {
    /// Session to upload to
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// File to upload, at most 32 MiB; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Media type of the bytes
    #[arg(long, value_name = "TYPE", default_value = "application/octet-stream")]
    media_type: String,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Uploaded {
    sha256: String,
}

/// A text that is no digest.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
struct InvalidDigest;

fn digest(text: &str) -> Result<Digest, InvalidDigest> {
    Digest::from_hex(&text.to_ascii_lowercase()).ok_or(InvalidDigest)
}

impl Blob {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Get(get) => get.run(),
            Command::Put(put) => put.run(),
        }
    }
}

impl Get {
    fn run(self) -> Result<(), Failure> {
        let address = blob_url(&self.session, &self.sha256);
        self.access.run(async |server, _| {
            let bytes = server.bytes(&address).await?;
            // Something else may answer in the server's place.
            if Digest::of(&bytes) != self.sha256 {
                return Err(Refusal::Foreign { url: server.url(&address), status: StatusCode::OK });
            }
            match self.output {
                Some(path) => fs::write(&path, &bytes).map_err(|source| Refusal::Unwritten {
                    name: path.display().to_string(),
                    source,
                }),
                None => match io::stdout().write_all(&bytes) {
                    // The reader closed the pipe: it has read enough.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    written => written.map_err(Refusal::Output),
                },
            }
        })
    }
}

impl Put {
    fn run(self) -> Result<(), Failure> {
        let Self { session, file, media_type, repeat, access } = self;
        let address = format!("{}/blobs", session_url(&session));
        access.run(async |server, screen| {
            let body = input::bytes(Some(&*file).filter(|file| file.as_os_str() != "-"))?;
            let write =
                Write { method: Method::POST, address, media_type: media_type.into(), body };
            let received = server.write(write, &repeat.key()).await?;
            screen.show(&received, |uploaded: Uploaded| format!("{}\n", uploaded.sha256))
        })
    }
}
