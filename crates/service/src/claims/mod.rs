//! Claims of the next request: search, claim, and wait for one that comes.

pub(crate) mod queue;

use imbl::OrdSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Keep, Reply, Service, ServiceError, SessionHandle};
use blackboard_board::{
    Answer, Board, Command, Next, Rejected, Revision, Seq, SessionName, Terms, Ttl, Wanted,
};
use blackboard_fairness::compute;
use queue::Place;

/// The number of claimable requests up to which a search needs no other thread.
const SEARCHED_HERE_MAX: usize = 100;

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
    /// The oldest that matches.
    found: Option<Seq>,
    /// The requests that were claimable, and the revision of the board.
    claimable: OrdSet<Seq>,
    revision: Revision,
}

impl SessionHandle {
    /// Claims the oldest claimable request that matches, and waits for one to come if there is a `wait`. The answer is
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
            let from = search.found.unwrap_or(Seq(u64::MAX));
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
    /// Finds the oldest claimable request that matches; none if there is no session.
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
        let (claimable, revision) = (board.tasks().claimable().clone(), board.revision());
        let found = match board.next_claimable(wanted, Seq(0), SEARCHED_HERE_MAX) {
            Next::Found(seq) => Some(seq),
            Next::None => None,
            Next::After(last) => {
                let wanted = wanted.clone();
                let rest = compute(move || find_after(&board, &wanted, last)).await;
                rest.map_err(|_| ServiceError::Fault)?
            }
        };
        Ok(Search { found, claimable, revision })
    }
}

fn find_after(board: &Board, wanted: &Wanted, mut last: Seq) -> Option<Seq> {
    loop {
        match board.next_claimable(wanted, Seq(last.0.saturating_add(1)), usize::MAX) {
            Next::Found(seq) => return Some(seq),
            Next::None => return None,
            Next::After(next) => last = next,
        }
    }
}
