//! Pages of a log: filtered entries as JSON, or items as JSON lines.

mod kept;
pub mod one_by_one;

use std::iter::Peekable;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::intake::query::{AnyNumber, Count, Flag, Of, OrderName, Text, many, queries};
use crate::intake::steps::steps;
use crate::params::{Params, invalid};
use crate::pieces::{PIECE_BYTES, Pieces};
use crate::refusal::Refusal;
use crate::schema::shapes::number;
use crate::view::entry::{EntryBody, View};
use crate::view::inline_image::Inline;
use crate::view::write_page_end;
use crate::yielding::{TURN_BYTES_MAX, Turns};
use blackboard_board::json::Exact;
use blackboard_board::{
    AgentName, Board, Contains, Entry, Field, Filter, Log, LogName, Order, Revision, Selection,
    Seq, SessionName,
};
use blackboard_fairness::compute;
use blackboard_service::{ServiceError, SessionHandle};

/// The number of entries on a page by default.
const LIMIT_DEFAULT: usize = 100;

/// The maximum number of entries on a page.
const LIMIT_MAX: u64 = 1000;

/// The maximum number of entries that one page examines, matching or not.
const EXAMINED_MAX: usize = 10_000;

/// The maximum bytes of items that one page examines; the entry that reaches the limit is the last.
const EXAMINED_BYTES_MAX: u64 = 8 << 20;

/// A page of a log.
#[derive(Serialize, ToSchema)]
pub struct EntryPage<'a> {
    /// The matching entries, in the requested order.
    entries: Vec<EntryBody<'a>>,
    /// The seq of the last entry examined: the value of `after` for the next page, or of `before` with `order=desc`.
    next: u64,
    /// True if more entries are left to examine.
    more: bool,
    /// The number of entries in the log.
    count: usize,
    /// The revision of the log's last change; the session's is in `Blackboard-Revision`.
    revision: u64,
}

queries! {
    /// The span of a page.
    pub PageQuery {
        /// Only entries after this seq
        after: AnyNumber,
        /// Only entries before this seq
        before: AnyNumber,
        /// The maximum number of entries; 100 by default, or all as lines
        limit: Count<1, LIMIT_MAX>,
        /// `asc`, the default, starts with the oldest, `desc` with the newest
        order: OrderName,
        /// The last N matching entries, ascending; not with `after`, `before`, `limit` or `order`. If the page reaches
        /// its limit of examined entries before it has N, `more` is true: continue with `order=desc` and `before` =
        /// `next`
        latest: Count<1, LIMIT_MAX>,
    }

    /// The entries of a page.
    pub FilterQuery {
        /// Only items whose `step` is one of these JSON numbers, by value (2 equals 2.0)
        steps via steps: Vec<Exact> => many(number()),
        /// Only items with this `status`, or with this `status` in one of their `results`
        status: Text,
        /// Only entries that this agent appended, and entries without an author whose item has this `agent`
        agent: Of<AgentName>,
        /// Only items with this `key`
        trajectory_key: Text,
        /// Only items with this text in a string value at any depth, ignoring case and normal forms
        contains: Text,
        /// Only questions with a string `question` or `text` and without `answer`, and requests that are neither
        /// claimed, done, failed nor blocked. No effect on the other logs
        pending: Flag = false,
        /// Only requests whose results wait for a verdict; no effect on the other logs
        in_review: Flag = false,
        /// Only messages that are not acknowledged; no effect on the other logs
        unacked: Flag = false,
    }
}

/// The query of a log.
pub struct LogQuery {
    selection: Selection,
    limit: Option<usize>,
    latest: Option<usize>,
    view: View,
    lines: bool,
}

impl LogQuery {
    /// Takes the parameters of a log. `lines` asks for bare items, one per line.
    pub fn params(
        session: &SessionName,
        lines: bool,
        params: &mut Params,
    ) -> Result<Self, Refusal> {
        let PageQuery { after, before, limit, order, latest } = PageQuery::take(params)?;
        if latest.is_some()
            && (after.is_some() || before.is_some() || limit.is_some() || order.is_some())
        {
            return Err(invalid("latest", "cannot be combined with after, before, limit or order"));
        }
        let selection = Selection {
            after: after.map(Seq),
            before: before.map(Seq),
            order: order.unwrap_or_default(),
            filter: filter(params)?,
        };
        let view = View::params(session, params)?;
        Ok(Self { selection, limit, latest, view, lines })
    }

    /// Returns true if bare items were requested, one per line.
    pub fn lines(&self) -> bool {
        self.lines
    }

    /// Returns true if the query continues after a reader's cursor, so that the reader may wait for more.
    pub fn goes_on(&self) -> bool {
        self.selection.after.is_some()
    }

    /// Returns true if the page has an entry, or ends before the log does. At `looked` the page had none, so only
    /// later changes can match.
    pub async fn has_entry(
        &self,
        board: &Arc<Board>,
        name: &LogName,
        looked: Option<Revision>,
    ) -> bool {
        let mut examinable = Examinable::of(self.lines, &self.selection.filter);
        let mut walk = self.selection.walk(board, name);
        let mut turns = Turns::default();
        while !examinable.is_spent()
            && let Some(entry) = walk.next()
        {
            examinable.take(&entry);
            turns.examined(&entry).await;
            let changed = looked.is_none_or(|looked| entry.revision > looked);
            if changed && matches(&self.selection.filter, name, &entry).await {
                return true;
            }
        }
        !walk.is_over()
    }

    /// Returns the response in pieces.
    pub async fn pieces(
        self,
        session: SessionHandle,
        board: Arc<Board>,
        name: LogName,
    ) -> LogPieces {
        let log = board.log(&name);
        let count = log.map_or(0, Log::len);
        let walk = self.selection.walk(&board, &name);
        let (filter, mut older) = (self.selection.filter, false);
        let (entries, filter, examined): (Entries, _, _) = match self.latest {
            Some(latest) => {
                let examinable = Examinable::of(self.lines, &filter);
                let (entries, end) = newest(&board, &name, &filter, latest, examinable).await;
                older = end.is_some();
                // The newest entry was examined, whether it matched or not.
                let last = log.and_then(|log| log.iter().next_back()).map(|entry| entry.seq);
                (Box::new(entries.into_iter()), Filter::default(), end.or(last))
            }
            None => (Box::new(walk), filter, None),
        };
        let next = match self.selection.order {
            Order::Ascending => self.selection.after.unwrap_or_default(),
            Order::Descending => {
                let end = log.map_or(Seq(1), Log::next_seq);
                self.selection.before.unwrap_or(end)
            }
        };
        let limit = self.limit.or((!self.lines).then_some(LIMIT_DEFAULT));
        let examinable = Examinable::of(self.lines, &filter);
        LogPieces {
            session,
            revision: board.log_version(&name).changed,
            board,
            name,
            entries: entries.peekable(),
            filter,
            view: self.view,
            left: self.latest.or(limit).unwrap_or(usize::MAX),
            examinable,
            next: examined.unwrap_or(next),
            moves_next: self.latest.is_none(),
            older,
            count,
            lines: self.lines,
            written: 0,
            begun: false,
            inline: None,
            turns: Turns::default(),
        }
    }
}

fn filter(params: &mut Params) -> Result<Filter, Refusal> {
    let query = FilterQuery::take(params)?;
    let FilterQuery { steps, status, agent, trajectory_key, contains, pending, in_review, unacked } =
        query;
    let contains = contains.as_deref().map(Contains::new);
    let agent = agent.map(String::from);
    let texts = [(Field::Status, status), (Field::Agent, agent), (Field::Key, trajectory_key)];
    Ok(Filter { steps, contains, pending, in_review, unacked, ..Filter::of_texts(texts) })
}

/// Returns the last matching entries, oldest first, and the last entry examined if older ones are left.
async fn newest(
    board: &Arc<Board>,
    name: &LogName,
    filter: &Filter,
    count: usize,
    mut examinable: Examinable,
) -> (Vec<Arc<Entry>>, Option<Seq>) {
    let filter_of = filter.clone();
    let backwards =
        Selection { order: Order::Descending, filter: filter_of, ..Selection::default() };
    let (mut found, mut last) = (Vec::new(), None);
    let (mut walk, mut turns) = (backwards.walk(board, name), Turns::default());
    let mut is_spent = false;
    while found.len() < count && !is_spent {
        let Some(entry) = walk.next() else { break };
        last = Some(entry.seq);
        examinable.take(&entry);
        turns.examined(&entry).await;
        if matches(filter, name, &entry).await {
            found.push(entry);
        }
        is_spent = examinable.is_spent();
    }
    found.reverse();
    let is_cut = is_spent && found.len() < count && !walk.is_over();
    (found, last.filter(|_| is_cut))
}

/// Returns true if an entry matches. A large item is searched on another thread.
async fn matches(filter: &Filter, name: &LogName, entry: &Arc<Entry>) -> bool {
    if filter.contains.is_none() || entry.bytes() <= TURN_BYTES_MAX as u64 {
        return filter.matches(name, entry);
    }
    let (of_filter, log, large) = (filter.clone(), name.clone(), Arc::clone(entry));
    let matching = compute(move || of_filter.matches(&log, &large)).await;
    // A panic on the other thread would recur here.
    matching.unwrap_or_else(|_| filter.matches(name, entry))
}

/// The remaining budget of entries to examine.
struct Examinable {
    entries: usize,
    bytes: u64,
}

impl Examinable {
    /// Lines are written as fast as the client takes them, in any number. An unfiltered page is bounded by its limit.
    fn of(lines: bool, filter: &Filter) -> Self {
        if lines || filter.is_empty() {
            return Self { entries: usize::MAX, bytes: u64::MAX };
        }
        Self { entries: EXAMINED_MAX, bytes: EXAMINED_BYTES_MAX }
    }

    fn take(&mut self, entry: &Entry) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(entry.bytes());
    }

    const fn is_spent(&self) -> bool {
        self.entries == 0 || self.bytes == 0
    }
}

type Entries = Box<dyn Iterator<Item = Arc<Entry>> + Send>;

/// A log's response, written piece by piece.
pub struct LogPieces {
    session: SessionHandle,
    board: Arc<Board>,
    name: LogName,
    entries: Peekable<Entries>,
    filter: Filter,
    view: View,
    /// The number of entries that may still be shown.
    left: usize,
    examinable: Examinable,
    next: Seq,
    moves_next: bool,
    /// True if older entries are left to examine.
    older: bool,
    count: usize,
    revision: Revision,
    lines: bool,
    written: usize,
    begun: bool,
    /// The rest of the entry being written.
    inline: Option<Inline>,
    turns: Turns,
}

impl Pieces for LogPieces {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        let start = out.len();
        if !self.begun {
            self.begun = true;
            if !self.lines {
                out.push_str("{\"entries\":[");
            }
        }
        if let Some(inline) = &mut self.inline {
            if inline.write(out).await? {
                return Ok(true);
            }
            self.inline = None;
        }
        while let Some(entry) = self.next_matching().await {
            self.inline = self.begin_one(&entry, out).await?;
            if self.inline.is_some() || out.len() - start >= PIECE_BYTES {
                return Ok(true);
            }
        }
        if !self.lines {
            self.write_end(out);
        }
        Ok(false)
    }
}

impl LogPieces {
    /// Returns the next entry that matches, within the bounds of the page.
    async fn next_matching(&mut self) -> Option<Arc<Entry>> {
        while self.left > 0 && !self.examinable.is_spent() {
            let entry = self.entries.next()?;
            self.examinable.take(&entry);
            if self.moves_next {
                self.next = entry.seq;
            }
            self.turns.examined(&entry).await;
            if self.filter.is_empty() || matches(&self.filter, &self.name, &entry).await {
                self.left -= 1;
                return Some(entry);
            }
        }
        None
    }

    /// Returns true if entries are left to examine, on this page or after it.
    fn has_more(&mut self) -> bool {
        self.older || self.entries.peek().is_some()
    }

    /// Writes an entry up to its inline image, if it has one.
    async fn begin_one(
        &mut self,
        entry: &Entry,
        out: &mut String,
    ) -> Result<Option<Inline>, ServiceError> {
        if self.lines {
            let rest = self.view.begin_item(&self.session, &self.board, &entry.item, out).await?;
            if rest.is_none() {
                out.push('\n');
            }
            return Ok(rest.map(|rest| rest.and("\n")));
        }
        if self.written > 0 {
            out.push(',');
        }
        self.written += 1;
        if self.view.write_whole(&self.board, entry, out) {
            return Ok(None);
        }
        self.view.begin_entry(&self.session, &self.board, entry, out).await
    }

    fn write_end(&mut self, out: &mut String) {
        let more = self.has_more();
        let (next, revision) = (self.next.0, self.revision.0);
        let page = EntryPage { entries: Vec::new(), next, more, count: self.count, revision };
        write_page_end(&page, out);
        out.push('\n');
    }
}
