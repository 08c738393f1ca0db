//! Open questions, each delivered once: those of the inbox whose ids are not in the cursor.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::cursor::CursorFile;
use super::message::Message;
use super::receiver::Receiver;
use super::stopped::Stopped;
use crate::note;
use crate::remote::end::End;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::server::{Received, Server};
use blackboard_board::SessionName;

/// The most open questions; the cursor holds an id for each.
const OPEN_MAX: usize = 10_000;

/// The questions of a page.
const PAGE_ENTRIES: usize = 1_000;

/// The time to wait for another question. A page's tag says nothing of the pages after it.
const WAIT: &str = "60s";
const WAIT_OF_MANY_PAGES: &str = "5s";

/// The pause before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The open questions of a session, or of all sessions.
#[derive(Debug)]
pub(super) struct Questions<'a> {
    pub(super) server: &'a Server,
    pub(super) session: Option<SessionName>,
    pub(super) prefix: Option<String>,
    pub(super) label: Option<String>,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    questions: Vec<&'a RawValue>,
    next: Option<String>,
    more: bool,
}

#[derive(Deserialize)]
struct Place {
    session: String,
}

/// The result of a look at all open questions.
struct Look {
    open: BTreeSet<String>,
    /// The tag of the first page.
    etag: String,
    is_one_page: bool,
}

impl Questions<'_> {
    /// Delivers open questions until a signal comes.
    pub(super) async fn forward(
        &self,
        receiver: &Receiver,
        cursor: &CursorFile,
        end: &mut End,
    ) -> Result<(), Refusal> {
        let mut outbox = Outbox { receiver, cursor, delivered: cursor.questions()?, end };
        outbox.save()?;
        let (mut has_begun, mut is_told) = (false, false);
        loop {
            let looked = match self.look(&mut outbox).await {
                Ok(Some(look)) => {
                    (has_begun, is_told) = (true, false);
                    outbox.forget_others(&look.open)?;
                    let newer = self.newer(&look);
                    let Some(newer) = outbox.end.or(newer).await else { return Ok(()) };
                    newer
                }
                Ok(None) => return Ok(()),
                Err(refusal) => Err(refusal),
            };
            match looked {
                Err(refusal) if has_begun && refusal.is_passing() => {
                    if !is_told {
                        note(format_args!("{refusal}; trying again"));
                    }
                    is_told = true;
                    if outbox.end.or(sleep(PAUSE)).await.is_none() {
                        return Ok(());
                    }
                }
                looked => looked?,
            }
        }
    }

    /// Delivers what is open and was not delivered, page by page. Returns nothing if a signal came.
    async fn look(&self, outbox: &mut Outbox<'_>) -> Result<Option<Look>, Refusal> {
        let (mut open, mut after) = (BTreeSet::new(), None);
        let mut first: Option<String> = None;
        loop {
            let address = self.query().with("after", after.take()).address();
            let Some(received) = outbox.end.or(self.server.get(&address)).await else {
                return Ok(None);
            };
            let received = received?;
            let is_one_page = first.is_none();
            let etag = first.get_or_insert_with(|| received.etag.clone()).clone();
            let page: Page<'_> = received.read()?;
            let is_last = self.deliver(&received, &page, &mut open, outbox).await?;
            let Some(is_last) = is_last else { return Ok(None) };
            if is_last || !page.more || page.next.is_none() {
                return Ok(Some(Look { open, etag, is_one_page }));
            }
            after = page.next;
        }
    }

    /// Delivers a page. Returns true if what follows is of other sessions, and nothing if a signal came.
    async fn deliver(
        &self,
        received: &Received,
        page: &Page<'_>,
        open: &mut BTreeSet<String>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Option<bool>, Refusal> {
        for entry in &page.questions {
            // A name comes before the longer ones that begin with it.
            if let Some(wanted) = &self.session {
                let place: Place = received.part(entry)?;
                if place.session != wanted.as_str() {
                    return Ok(Some(true));
                }
            }
            let message = Message::of_question(entry)?;
            if open.len() >= OPEN_MAX {
                return Err(Stopped::TooManyOpen { max: OPEN_MAX }.into());
            }
            open.insert(message.id.clone());
            if !outbox.deliver(&message).await? {
                return Ok(None);
            }
        }
        Ok(Some(false))
    }

    /// Waits for a change.
    async fn newer(&self, look: &Look) -> Result<(), Refusal> {
        let wait = if look.is_one_page { WAIT } else { WAIT_OF_MANY_PAGES };
        let address = self.query().with("wait", Some(wait)).address();
        self.server.get_newer(&address, &look.etag).await.map(drop)
    }

    fn query(&self) -> Query {
        let session = self.session.as_ref().map(ToString::to_string);
        Query::of("/v1/questions".to_owned())
            .with("limit", Some(PAGE_ENTRIES))
            .with("prefix", session.or_else(|| self.prefix.clone()))
            .with("label", self.label.clone())
    }
}

/// The questions that a receiver has acknowledged.
struct Outbox<'a> {
    receiver: &'a Receiver,
    cursor: &'a CursorFile,
    delivered: BTreeSet<String>,
    end: &'a mut End,
}

impl Outbox<'_> {
    /// Delivers a question unless it was before. Returns false if a signal came.
    async fn deliver(&mut self, message: &Message) -> Result<bool, Refusal> {
        if self.delivered.contains(&message.id) {
            return Ok(true);
        }
        if !self.receiver.deliver(message, self.end).await? {
            return Ok(false);
        }
        self.delivered.insert(message.id.clone());
        self.save()?;
        Ok(!self.end.has_come())
    }

    /// Forgets questions that are not open any more.
    fn forget_others(&mut self, open: &BTreeSet<String>) -> Result<(), Stopped> {
        let before = self.delivered.len();
        self.delivered.retain(|id| open.contains(id));
        if self.delivered.len() == before { Ok(()) } else { self.save() }
    }

    fn save(&self) -> Result<(), Stopped> {
        self.cursor.write_questions(&self.delivered)
    }
}
