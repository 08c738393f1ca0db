//! Claims of the next request: search, claim, and wait for one that comes.

pub(crate) mod queue;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Keep, Reply, Service, ServiceError, SessionHandle};
use blackboard_board::{
    Answer, Board, Command, Next, Rank, Rejected, Revision, SessionName, Tasks, Terms, Ttl, Wanted,
};
use blackboard_fairness::compute;
use queue::Place;

/// The number of claimable requests up to which a search needs no other thread: so many take no longer than the way there
/// and back.
const SEARCHED_HERE_MAX: usize = 2_000;

/// The number of times that other workers may win a request before this one.
const LOST_MAX: usize = 1_000;

/// A claim of the next request.
#[derive(Clone, Debug)]
pub struct NextClaim {
    /// The members that the request must have.
    pub wanted: Wanted,
    /// The time to live of the claim.
    pub ttl: Ttl,
}

/// A wait for a request to claim.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The end of the wait.
    pub deadline: Instant,
    /// Cancelled when nobody waits for the request any more.
    pub given_up: CancellationToken,
}

/// The result of a search for a claimable request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// The first that matches.
    found: Option<Rank>,
    /// The tasks that were searched, and the revision of the board.
    tasks: Tasks,
    revision: Revision,
}

impl SessionHandle {
    /// Claims the first claimable request that matches, by priority and then by age, and waits for one to come if there is a `wait`. The answer is
    /// [`Answer::Next`], without a claim if none came.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub async fn claim_next(
        &self,
        terms: &Terms,
        claim: &NextClaim,
        wait: Option<Wait>,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        let Self { service, name, .. } = self;
        let NextClaim { wanted, ttl } = claim;
        let mut place: Option<Place> = None;
        let mut search = service.find_claimable(name, wanted).await?;
        for _ in 0..LOST_MAX {
            // The writer checks the conditions and the key even if there is nothing to claim.
            let from = search.found.unwrap_or(Rank::LAST);
            let command = Command::ClaimNext { wanted: wanted.clone(), from, ttl: *ttl };
            let written = self.write(terms.clone(), command, Vec::new(), keep.clone()).await;
            let reply = match written {
                Ok(Reply::Now(receipt)) if receipt.answer == Answer::Next(None) => receipt,
                Err(ServiceError::Rejected {
                    rejected: Rejected::TooManyExamined { .. }, ..
                }) => {
                    search = service.find_claimable(name, wanted).await?;
                    continue;
                }
                reply => return reply,
            };
            search = service.find_claimable(name, wanted).await?;
            if search.found.is_some() {
                continue;
            }
            let Some(wait) = &wait else { return Ok(Reply::Now(reply)) };
            let place = match &mut place {
                Some(place) => place,
                none => none.insert(service.join(name, wanted, &search)?),
            };
            match place.offer(&search, wait).await {
                Some(Some(offered)) => search.found = Some(offered),
                // The board changed so much that only a search tells.
                Some(None) => search = service.find_claimable(name, wanted).await?,
                None => return Ok(Reply::Now(reply)),
            }
        }
        Err(ServiceError::Overloaded)
    }
}

impl Service {
    /// Finds the first claimable request that matches; none if there is no session.
    async fn find_claimable(
        &self,
        name: &SessionName,
        wanted: &Wanted,
    ) -> Result<Search, ServiceError> {
        let published = match self.published(name).await {
            // The writer refuses the claim.
            Ok(None) | Err(ServiceError::Damaged) => return Ok(Search::default()),
            published => published?,
        };
        let Some(published) = published else { return Ok(Search::default()) };
        let board = published.board;
        let (tasks, revision) = (board.tasks().clone(), board.revision());
        let found = match board.next_claimable(wanted, Rank::FIRST, SEARCHED_HERE_MAX) {
            Next::Found(rank) => Some(rank),
            Next::None => None,
            Next::After(last) => {
                let wanted = wanted.clone();
                let rest = compute(move || find_after(&board, &wanted, last)).await;
                rest.map_err(|_| ServiceError::Fault)?
            }
        };
        Ok(Search { found, tasks, revision })
    }
}

fn find_after(board: &Board, wanted: &Wanted, mut last: Rank) -> Option<Rank> {
    loop {
        match board.next_claimable(wanted, last.next(), usize::MAX) {
            Next::Found(rank) => return Some(rank),
            Next::None => return None,
            Next::After(next) => last = next,
        }
    }
}
