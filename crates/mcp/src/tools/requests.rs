//! Work on requests: claim one, end one, review a result.

use std::str::FromStr;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::reading::cut;
use crate::call::answer::{Facts, Failure};
use crate::call::arguments::pointer;
use crate::call::{Call, Writing};
use crate::call::{Outcome, Running};
use blackboard_api::ops::requests::{
    Cancelling, Claimed, Claiming, ClaimingNext, Failing, Finishing, Judging, Retrying, request,
};
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_api::view::entry::{ClaimBody, past_attempts};
use blackboard_auth::Scope;
use blackboard_board::{Board, Claim, Command, Entry, LogName, Revision, Seq, json};
use blackboard_service::{NextClaim, Receipt, ServiceError, SessionHandle, Wait};

/// The number of newest requests that are examined for claims.
const EXAMINED_MAX: usize = 1000;

/// The size of a request that is shown with its claim.
const ITEM_BYTES_MAX: usize = 32_000;

/// The step before the work on a request that is cut.
const READ_WHOLE: &str = "the request is cut: read it whole with read_log (log requests, after=seq-1, before=seq+1, \
    max_tokens); then ";

pub(crate) fn claim_request(call: Call) -> Running {
    claim(call).boxed()
}

async fn claim(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.need_agent()?;
    let seq = call.arguments.whole("seq", 1, u64::MAX)?.map(Seq);
    let deadline = call.deadline()?;
    if let Some(seq) = seq {
        if call.arguments.take("match").is_some() {
            let why = "give either 'seq' or 'match', not both";
            return Err(invalid_field(pointer("match"), why).into());
        }
        let claiming: Claiming = call.input().await?;
        let writing = call.writing(session, Some(agent))?;
        return claim_one(&writing, seq, claiming).await;
    }
    let claiming: ClaimingNext = call.input().await?;
    let writing = call.writing(session, Some(agent))?;
    claim_next(&writing, claiming.next(), deadline).await
}

async fn claim_one(writing: &Writing, seq: Seq, claiming: Claiming) -> Result<Outcome, Failure> {
    // The answer has the request.
    writing.call.caller().needs(Scope::Read)?;
    let shape = move |receipt: &Receipt| match Claimed::of(receipt, Some(seq)) {
        Some(found) => claimed(Facts::new().put("renewed", &!found.is_won), &found),
        None => Facts::new().put("claimed", &false),
    };
    Ok(writing.run(claiming.of(seq), Vec::new(), shape).await?.into())
}

async fn claim_next(
    writing: &Writing,
    claim: NextClaim,
    deadline: Instant,
) -> Result<Outcome, Failure> {
    let Writing { call, write } = writing;
    write.may_claim(&claim)?;
    // A worker may be there before its session.
    let exists = call.wait_for(&write.session, deadline, |board| Ok(board.map(|_| ()))).await?;
    if exists.is_none() {
        let next = "not yet: the session does not exist; call claim_request again to wait for it";
        return Ok(Facts::new().put("claimed", &false).next(next).into());
    }
    let wait = Wait { deadline, given_up: call.gone.clone() };
    let shape = Arc::new(|receipt: &Receipt| match Claimed::of(receipt, None) {
        Some(found) => claimed(Facts::new(), &found),
        None => nothing_to_claim(&receipt.board),
    });
    let reply = write.claim_next(&claim, Some(wait), writing.keep(&shape)).await;
    Ok(writing.told(reply, &*shape)?.into())
}

/// Tells a claim, and the request. The agent knows itself.
fn claimed(facts: Facts, found: &Claimed<'_>) -> Facts {
    let Claimed { claim, seq, entry, .. } = found;
    let item =
        entry.map_or_else(|| "null".to_owned(), |entry| cut(entry.item.text(), ITEM_BYTES_MAX));
    let is_cut = entry.is_some_and(|entry| entry.item.text().len() > ITEM_BYTES_MAX);
    let read = if is_cut { READ_WHOLE } else { "" };
    let next = format!(
        "{read}do the work, then finish_request with seq={seq} and fence={}; if it takes longer, claim_request with seq={seq} \
         renews the claim",
        claim.fence
    );
    let is_cancelled =
        entry.and_then(|entry| entry.task.as_deref()).is_some_and(|task| task.cancel.is_some());
    let stop = format!(
        "the request was cancelled: stop the work, then finish_request with seq={seq}, fence={} and outcome=failed",
        claim.fence
    );
    let data = Facts::new().put_json("request", &item);
    let data = match entry.and_then(past_attempts) {
        Some(attempts) => data.put_json("past_attempts", &attempts),
        None => data,
    };
    facts
        .put("claimed", &true)
        .put("seq", seq)
        .put_members(&ClaimBody::of(claim), &["agent"])
        .next(if is_cancelled { &stop } else { &next })
        .board_data(&data)
}

pub(crate) fn review_request(call: Call) -> Running {
    review(call).boxed()
}

async fn review(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.need_agent()?;
    let seq = call.arguments.need_seq("seq")?;
    let mut judging: Judging = call.input().await?;
    if judging.fence.is_none() {
        judging.fence = present_fence(&session, seq).await?;
    }
    let command = judging.of(seq);
    let writing = call.writing(session, Some(agent))?;
    let shape = move |receipt: &Receipt| {
        let entry = request(&receipt.board, seq);
        let work = entry.and_then(|entry| entry.work.as_deref());
        Facts::new()
            .put("seq", &seq)
            .put("done", &work.is_some_and(|work| work.done().is_some()))
            .put("claimable_again", &entry.is_some_and(Entry::is_claimable))
            .put("revision", &receipt.board.revision())
    };
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}

/// Returns the fence of the result that is in review, or was accepted. One without a claim has none.
async fn present_fence(
    session: &SessionHandle,
    seq: Seq,
) -> Result<Option<Revision>, ServiceError> {
    let published = session.published().await?;
    let entry = published.as_ref().and_then(|published| request(&published.board, seq));
    let done = entry.and_then(|entry| entry.work.as_deref()).and_then(|work| {
        let in_review = work.in_review().map(|review| &review.done);
        in_review.or(work.done())
    });
    Ok(done.and_then(|done| done.fence))
}

/// Returns the claimed ones among the newest requests, the newest first.
pub(crate) fn newest_held(board: &Board) -> impl Iterator<Item = (&Entry, &Claim)> {
    let log = board.log(&LogName::Requests).into_iter();
    let examined = log.flat_map(|log| log.iter().rev().take(EXAMINED_MAX));
    examined.filter_map(|entry| Some((&**entry, entry.work.as_deref()?.claim()?)))
}

/// Tells why there is nothing to claim: nothing pending, or all held by others.
fn nothing_to_claim(board: &Board) -> Facts {
    let facts = Facts::new()
        .put("claimed", &false)
        .put("claimable", &board.tasks().claimable_now())
        .put("revision", &board.revision())
        .next("not yet: no request matches now; call claim_request again to wait for one");
    match newest_held(board).next() {
        Some((entry, claim)) => {
            let mut holder = format!("{{\"seq\": {}, \"by\": ", entry.seq);
            json::quote(claim.agent.as_str(), &mut holder);
            holder.push_str(&format!(", \"until\": \"{}\"}}", claim.expires_at));
            facts.board_data(&Facts::new().put_json("newest_held", &holder))
        }
        None => facts,
    }
}

/// The end of a request that a call chooses, or another beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Failed,
    Cancelled,
    Retry,
}

impl End {
    const NAMED: [(&str, Self); 4] = [
        ("done", Self::Done),
        ("failed", Self::Failed),
        ("cancelled", Self::Cancelled),
        ("retry", Self::Retry),
    ];

    /// The arguments that some ends take, with these ends.
    const ARGUMENTS: [(&str, &[Self], &str); 5] = [
        ("fence", &[Self::Done, Self::Failed], "done or failed"),
        ("result", &[Self::Done], "done"),
        ("reason", &[Self::Failed, Self::Cancelled], "failed or cancelled"),
        ("retry_in", &[Self::Failed], "failed"),
        ("deadline", &[Self::Retry], "retry"),
    ];
}

impl FromStr for End {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, end)| *end).ok_or("expected one of done, failed, cancelled, retry")
    }
}

pub(crate) fn finish_request(call: Call) -> Running {
    finish(call).boxed()
}

async fn finish(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let seq = call.arguments.need_seq("seq")?;
    let end = call.arguments.parsed("outcome")?.unwrap_or(End::Done);
    for (name, ends, outcomes) in End::ARGUMENTS {
        if !ends.contains(&end) && call.arguments.take(name).is_some() {
            let why = format!("goes with the outcome {outcomes}");
            return Err(invalid_field(pointer(name), why).into());
        }
    }
    let command = command(&mut call, end, seq).await?;
    let writing = call.writing(session, agent)?;
    let shape = move |receipt: &Receipt| ended(&receipt.board, end, seq);
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}

async fn command(call: &mut Call, end: End, seq: Seq) -> Result<Command, Refusal> {
    Ok(match end {
        End::Done => call.input::<Finishing>().await?.of(seq),
        End::Failed => call.input::<Failing>().await?.of(seq),
        End::Cancelled => call.input::<Cancelling>().await?.of(seq),
        End::Retry => call.input::<Retrying>().await?.of(seq),
    })
}

/// Tells what became of a request.
fn ended(board: &Board, end: End, seq: Seq) -> Facts {
    let entry = request(board, seq);
    let work = entry.and_then(|entry| entry.work.as_deref());
    let facts = Facts::new().put("seq", &seq);
    let facts = match end {
        End::Done if work.is_some_and(|work| work.in_review().is_some()) => facts
            .put("in_review", &true)
            .next("another agent judges the result; it may become claimable again"),
        End::Done => facts.put("done", &true),
        End::Failed => {
            let is_claimable = entry.is_some_and(Entry::is_claimable);
            facts.put("failed", &true).put("claimable_again", &is_claimable)
        }
        End::Cancelled => {
            let is_ended = work.is_some_and(|work| work.cancelled().is_some());
            let facts = facts.put("cancelled", &is_ended);
            match is_ended {
                true => facts,
                false => {
                    facts.next("its holder sees it; it ends with the claim, or at a second call")
                }
            }
        }
        End::Retry => facts.put("claimable_again", &entry.is_some_and(Entry::is_claimable)),
    };
    facts.put("revision", &board.revision())
}
