//! Waiting for a page of a log that has an entry after `after`.

use crate::read::Early;
use crate::read::deadline::Sought;
use blackboard_api::log_page::LogQuery;
use blackboard_api::refusal::no_session;
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Board, LogName, Revision, SessionName};
use blackboard_service::Published;

/// A page of a log, which a reader may wait for.
pub(crate) struct SoughtPage<'a> {
    session: &'a SessionName,
    log: &'a LogName,
    query: &'a LogQuery,
    format: &'static str,
    /// The revision at which the page was last examined and had no entry.
    looked: Option<Revision>,
}

impl<'a> SoughtPage<'a> {
    /// Creates the search for the page of a query.
    pub(crate) fn new(
        session: &'a SessionName,
        log: &'a LogName,
        query: &'a LogQuery,
        format: &'static str,
    ) -> Self {
        Self { session, log, query, format, looked: None }
    }

    fn rendering(&self, board: &Board) -> Rendering {
        let shown = Rendering::of(Resource::Log(self.log.clone()), board.log_version(self.log));
        shown.in_format(self.format)
    }
}

impl Sought for SoughtPage<'_> {
    fn may_come(&self) -> bool {
        self.query.goes_on()
    }

    async fn look(&mut self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        let board = &now.ok_or_else(|| no_session(self.session))?.board;
        if self.may_come() && !self.query.has_entry(board, self.log, self.looked).await {
            self.looked = Some(board.revision());
            return Ok(None);
        }
        Ok(Some(self.rendering(board)))
    }

    async fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early> {
        let board = &now.ok_or_else(|| no_session(self.session))?.board;
        Ok(self.rendering(board))
    }
}
