//! Export and import of archives.

use std::io;

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::time::timeout;

use super::answer::{Answer, Done, Refusal, SILENCE_MAX, done};
use super::request::Sought;
use blackboard_auth::Caller;
use blackboard_board::{Revision, SessionName, Terms};
use blackboard_service::{Cut, Export, Listing, Reply, Service, ServiceError, SessionHandle};

/// The number of names looked up at once.
const NAMES_AT_ONCE: usize = 1_000;

/// The number of attempts to pin a session whose history is being truncated.
const LOOKS_MAX: usize = 8;

/// The size of one read of an archive.
const PIECE_BYTES: usize = 64 << 10;

/// The last line of an export or import.
#[derive(Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    /// The last revision of a damaged session that its archive does not reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Revision>,
}

pub(super) async fn sessions(service: &Service, answer: &mut Answer) -> Done {
    let (mut after, mut count): (Option<SessionName>, usize) = (None, 0);
    loop {
        let page = service.listed(Listing::all(""), after.as_ref(), NAMES_AT_ONCE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.summary.name.clone());
        count += page.len();
        let mut lines = String::new();
        for listed in &page {
            let sought = Sought { session: listed.summary.name.clone() };
            lines.push_str(&serde_json::to_string(&sought).map_err(Refusal::Unwritten)?);
            lines.push('\n');
        }
        answer.lines(&lines).await?;
    }
    done(&Told { sessions: Some(count), revision: None, head: None })
}

pub(super) async fn export(service: &Service, session: &SessionName, answer: &mut Answer) -> Done {
    let session = service.session(&Caller::owner(), session).await?;
    let (mut export, revision, head) = match begun(&session).await {
        Err(Refusal::Service(ServiceError::Damaged)) => {
            let (export, Cut { revision, head, .. }) = session.export_damaged().await?;
            (export, revision, Some(head))
        }
        begun => {
            let (export, revision) = begun?;
            (export, revision, None)
        }
    };
    while let Some(lines) = export.next().await? {
        answer.lines(&lines).await?;
    }
    done(&Told { sessions: None, revision: Some(revision), head })
}

/// Opens an archive of the published board; a history truncated before it is pinned is opened again.
async fn begun(session: &SessionHandle) -> Result<(Export, Revision), Refusal> {
    for _ in 0..LOOKS_MAX {
        let published = session.published().await?;
        let board = published.ok_or_else(|| Refusal::NoSession(session.name().clone()))?.board;
        let revision = board.revision();
        match session.export(board).await {
            Err(ServiceError::Compacted { .. }) => session.renew().await?,
            export => return Ok((export?, revision)),
        }
    }
    Err(ServiceError::Overloaded.into())
}

pub(super) async fn import(
    service: &Service,
    session: &SessionName,
    input: &mut BufReader<OwnedReadHalf>,
) -> Done {
    let session = service.session(&Caller::owner(), session).await?;
    let mut import = session.import().await?;
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = timeout(SILENCE_MAX, input.read_buf(&mut piece)).await;
        let read = read.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        // An import that ended early gives its reason at the end.
        if read == 0 || !import.push(piece).await {
            break;
        }
    }
    let imported = import.finish().await?;
    match session.adopt_import(Terms::default(), imported, None).await? {
        Reply::Now(receipt) => {
            let revision = Some(receipt.board.revision());
            done(&Told { sessions: None, revision, head: None })
        }
        // Only a write with a key can be one that was answered before.
        Reply::Before(_) => Err(ServiceError::Fault.into()),
    }
}
