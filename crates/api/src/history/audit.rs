//! The audit: pages and lines of commits, in either order.
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::pieces::Pieces;
use crate::view::change::{Form, write_commit};
use crate::view::event::EventBody;
use crate::view::write_page_end;
use blackboard_board::{AgentName, Board, Commit, Order, Revision, Timestamp, TraceId};
use blackboard_service::{ServiceError, SessionHandle};

/// The maximum number of reads of the history for a page, whether commits match or not. A read returns at most
/// [`COMMITS_AT_ONCE_MAX`](blackboard_service::COMMITS_AT_ONCE_MAX) commits.
const LOOKS_MAX: usize = 16;

/// The number of revisions to read together in descending order.
const WINDOW: u64 = 64;

/// The filter of commits.
#[derive(Clone)]
pub struct Chosen {
    /// Only commits by this agent.
    pub agent: Option<AgentName>,
    /// Only commits of this trace.
    pub trace: Option<TraceId>,
    /// Only commits of this kind, or with a change of this kind.
    pub kind: Option<&'static str>,
    /// Only commits at or after this time.
    pub since: Option<Timestamp>,
    /// Only commits at or before this time.
    pub till: Option<Timestamp>,
}

impl Chosen {
    fn has(&self, commit: &Commit) -> bool {
        let of_kind = |kind: &str| {
            commit.kind() == kind || commit.changes.iter().any(|change| change.kind() == kind)
        };
        (self.agent.is_none() || self.agent == commit.agent)
            && (self.trace.is_none() || self.trace == commit.trace)
            && self.kind.is_none_or(of_kind)
            && self.since.is_none_or(|since| commit.at >= since)
            && self.till.is_none_or(|till| commit.at <= till)
    }

    /// Returns true if no later commit in this order matches, since the times of commits never decrease.
    fn ends_with(&self, commit: &Commit, order: Order) -> bool {
        match order {
            Order::Ascending => self.till.is_some_and(|till| commit.at > till),
            Order::Descending => self.since.is_some_and(|since| commit.at < since),
        }
    }
}

/// The range of a history to read, between two exclusive revisions.
pub struct Span {
    after: Revision,
    before: Revision,
    order: Order,
    /// The cursor to continue at if no commit is examined.
    begin: Revision,
}

impl Span {
    /// Creates the range of a board's history between two exclusive revisions.
    pub fn new(
        board: &Board,
        after: Option<Revision>,
        before: Option<Revision>,
        order: Order,
    ) -> Self {
        let end = board.revision().next();
        let bounded = before.unwrap_or(end).min(end);
        let begin = match order {
            Order::Ascending => after.unwrap_or(board.oldest()),
            Order::Descending => bounded,
        };
        Self { after: after.unwrap_or(board.oldest()), before: bounded, order, begin }
    }

    fn is_over(&self) -> bool {
        self.after.next() >= self.before
    }
}

/// A page of commits.
#[derive(Serialize, ToSchema)]
pub struct AuditPage {
    /// The commits that match, in the requested order, with the addresses of their contents.
    #[schema(value_type = Vec<EventBody>)]
    commits: Vec<Box<RawValue>>,
    /// The last commit examined: the `after` of the next page, or `before` with `order=desc`.
    next: u64,
    /// True if there are more commits to examine.
    more: bool,
    /// The session's revision.
    revision: u64,
}

/// The audit's answer, written in pieces.
pub struct AuditPieces {
    session: SessionHandle,
    board: Arc<Board>,
    chosen: Chosen,
    span: Span,
    /// The number of commits that may still be shown.
    left: usize,
    /// The number of reads that are left.
    looks: usize,
    next: Revision,
    lines: bool,
    written: usize,
    begun: bool,
}

/// A commit as shown by the audit, rendered immediately so that the commit can be dropped.
struct Line {
    revision: Revision,
    text: Option<String>,
    ends: bool,
}

impl AuditPieces {
    /// Creates the answer for this range, as a page or as lines.
    pub fn new(
        session: SessionHandle,
        board: Arc<Board>,
        chosen: Chosen,
        span: Span,
        limit: Option<usize>,
        lines: bool,
    ) -> Self {
        Self {
            session,
            board,
            chosen,
            next: span.begin,
            span,
            left: limit.unwrap_or(usize::MAX),
            looks: if lines { usize::MAX } else { LOOKS_MAX },
            lines,
            written: 0,
            begun: false,
        }
    }

    /// Reads the next commits of the range, in its order; none at its end.
    async fn look(&mut self) -> Result<Vec<Line>, ServiceError> {
        match self.span.order {
            Order::Ascending => {
                let before = self.span.before;
                let mut lines = self.read(self.span.after).await?;
                lines.retain(|line| line.revision < before);
                Ok(lines)
            }
            Order::Descending => self.window().await,
        }
    }

    /// Reads the history once.
    async fn read(&mut self, after: Revision) -> Result<Vec<Line>, ServiceError> {
        self.looks = self.looks.saturating_sub(1);
        let commits = self.session.history(self.board.extent(), after).await?;
        Ok(commits.iter().map(|commit| self.line(commit)).collect())
    }

    /// Reads the last commits of the range, newest first.
    async fn window(&mut self) -> Result<Vec<Line>, ServiceError> {
        let Span { after: bottom, before, .. } = self.span;
        let mut from = Revision(before.0.saturating_sub(1 + WINDOW)).max(bottom);
        let mut found = self.through(from, before).await?;
        if found.is_empty() && from > bottom {
            let last = self.last_before(bottom, from.next()).await?;
            from = Revision(last.0.saturating_sub(WINDOW)).max(bottom);
            found = self.through(from, last.next()).await?;
        }
        found.reverse();
        Ok(found)
    }

    /// Reads all commits between two exclusive revisions.
    async fn through(
        &mut self,
        after: Revision,
        before: Revision,
    ) -> Result<Vec<Line>, ServiceError> {
        let (mut found, mut after) = (Vec::new(), after);
        while after.next() < before {
            let lines = self.read(after).await?;
            let Some(last) = lines.last() else { break };
            after = last.revision;
            found.extend(lines.into_iter().filter(|line| line.revision < before));
        }
        Ok(found)
    }

    /// Finds the last commit after `bottom` and before a revision, or returns `bottom` if there is none. An
    /// adopted history, of a fork or an archive, may skip very many revisions.
    async fn last_before(
        &mut self,
        bottom: Revision,
        before: Revision,
    ) -> Result<Revision, ServiceError> {
        // The commit is at `low` or later, and before `high`.
        let (mut low, mut high) = (bottom.0, before.0);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            let found = self.read(Revision(middle - 1)).await?;
            match found.first().map(|line| line.revision.0) {
                Some(first) if first < high => low = first,
                Some(_) | None => high = middle,
            }
        }
        Ok(Revision(low))
    }

    fn line(&self, commit: &Commit) -> Line {
        let commit = &*self.session.caller().visible(commit);
        let text = self.chosen.has(commit).then(|| {
            let changes: Vec<_> = commit.changes.iter().collect();
            let mut text = String::new();
            write_commit(self.session.name(), commit, &changes, true, Form::Brief, &mut text);
            text
        });
        let ends = self.chosen.ends_with(commit, self.span.order);
        Line { revision: commit.revision, text, ends }
    }

    /// Counts a commit as examined, and writes the commit if it matches.
    fn take(&mut self, line: Line, out: &mut String) {
        self.next = line.revision;
        match self.span.order {
            Order::Ascending => self.span.after = line.revision,
            Order::Descending => self.span.before = line.revision,
        }
        if line.ends {
            self.span.after = self.span.before;
        }
        let Some(text) = line.text else { return };
        self.left -= 1;
        if self.written > 0 && !self.lines {
            out.push(',');
        }
        self.written += 1;
        out.push_str(&text);
        if self.lines {
            out.push('\n');
        }
    }
}

impl Pieces for AuditPieces {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        if !self.begun && !self.lines {
            out.push_str("{\"commits\":[");
        }
        self.begun = true;
        if !self.span.is_over() {
            let lines = self.look().await?;
            if lines.is_empty() {
                self.span.after = self.span.before;
            }
            for line in lines {
                if self.left == 0 || self.span.is_over() {
                    break;
                }
                self.take(line, out);
            }
        }
        if !self.span.is_over() && self.left > 0 && self.looks > 0 {
            return Ok(true);
        }
        if !self.lines {
            let (more, next, revision) = (!self.span.is_over(), self.next, self.board.revision());
            let page = AuditPage { commits: Vec::new(), next: next.0, more, revision: revision.0 };
            write_page_end(&page, out);
            out.push('\n');
        }
        Ok(false)
    }
}
