//! Work on requests: claim one, finish one, cancel one, review a result.

use futures_util::FutureExt as _;
use std::sync::Arc;
use tokio::time::Instant;

use super::reading::cut;
use crate::call::answer::{Facts, Failure};
use crate::call::arguments::pointer;
use crate::call::{Call, Writing};
use crate::call::{Outcome, Running};
use blackboard_api::ops::requests::{
    Cancelling, Claimed, Claiming, ClaimingNext, Failing, Finishing, Judging, request,
};
use blackboard_api::refusal::invalid_field;
use blackboard_api::view::entry::{ClaimBody, past_attempts};
use blackboard_auth::Scope;
use blackboard_board::{Board, Claim, Entry, LogName, Seq, json};
use blackboard_service::{NextClaim, Receipt, Wait};

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
        "the request was cancelled: stop the work, then finish_request with seq={seq}, fence={} and failed=true",
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

pub(crate) fn cancel_request(call: Call) -> Running {
    cancel(call).boxed()
}

async fn cancel(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let seq = call.arguments.need_seq("seq")?;
    let command = call.input::<Cancelling>().await?.of(seq);
    let writing = call.writing(session, agent)?;
    let shape = move |receipt: &Receipt| {
        let work = request(&receipt.board, seq).and_then(|entry| entry.work.as_deref());
        let is_ended = work.is_some_and(|work| work.cancelled().is_some());
        let facts = Facts::new().put("seq", &seq).put("cancelled", &is_ended);
        let facts = facts.put("revision", &receipt.board.revision());
        match is_ended {
            true => facts,
            false => facts.next("its holder sees it; it ends with the claim, or at a second call"),
        }
    };
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}

pub(crate) fn review_request(call: Call) -> Running {
    review(call).boxed()
}

async fn review(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.need_agent()?;
    let seq = call.arguments.need_seq("seq")?;
    let command = call.input::<Judging>().await?.of(seq);
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

pub(crate) fn finish_request(call: Call) -> Running {
    finish(call).boxed()
}

async fn finish(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let seq = call.arguments.need_seq("seq")?;
    let failed = call.arguments.flag("failed")?;
    let (other, why) = match failed {
        false => ("reason", "goes with failed=true; a finished request has a 'result'"),
        true => ("result", "goes with a finished request; a failed one has a 'reason'"),
    };
    if call.arguments.take(other).is_some() {
        return Err(invalid_field(pointer(other), why).into());
    }
    let command = match failed {
        false => call.input::<Finishing>().await?.of(seq),
        true => call.input::<Failing>().await?.of(seq),
    };
    let writing = call.writing(session, agent)?;
    let shape = move |receipt: &Receipt| {
        let facts = Facts::new().put("seq", &seq);
        let is_claimable = request(&receipt.board, seq).is_some_and(Entry::is_claimable);
        let facts = match failed {
            false => facts.put("done", &true),
            true => facts.put("failed", &true).put("claimable_again", &is_claimable),
        };
        facts.put("revision", &receipt.board.revision())
    };
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}
