//! Work on requests: claim one, finish one.

use futures_util::FutureExt as _;
use std::sync::Arc;
use tokio::time::Instant;

use super::reading::cut;
use crate::api::intake::fields::{fence_member, result_member, ttl_member};
use crate::api::intake::tasks::wanted_members;
use crate::api::offload::work;
use crate::api::refusal::invalid_field;
use crate::auth::Scope;
use crate::board::{
    self, Board, Claim, Command, Entry, LogName, RequestCommand, Seq, Ttl, Wanted, json,
};
use crate::mcp::call::answer::{Facts, Failure};
use crate::mcp::call::arguments::pointer;
use crate::mcp::call::{Call, Writing};
use crate::mcp::call::{Outcome, Running};
use crate::service::{NextClaim, Receipt, Wait};

/// The number of newest requests that are examined for claims.
const EXAMINED_MAX: usize = 1000;

/// The size of a request that is shown with its claim.
const ITEM_BYTES_MAX: usize = 32_000;

pub(crate) fn claim_request(call: Call) -> Running {
    claim(call).boxed()
}

async fn claim(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.need_agent()?;
    let seq = call.arguments.whole("seq", 1, u64::MAX)?.map(Seq);
    let ttl = call.arguments.take("ttl");
    let ttl = ttl.map_or(Ok(Ttl::MINUTE), |ttl| ttl_member(&pointer("ttl"), &ttl))?;
    let wanted = call.arguments.take("match");
    let deadline = call.deadline()?;
    if let Some(seq) = seq {
        if wanted.is_some() {
            let why = "give either 'seq' or 'match', not both";
            return Err(invalid_field(pointer("match"), why).into());
        }
        let writing = call.writing(session, Some(agent))?;
        return claim_one(&writing, seq, ttl).await;
    }
    let wanted = match wanted {
        Some(text) => work(text.len(), move || wanted_members(&pointer("match"), &text)).await?,
        None => Wanted::default(),
    };
    let writing = call.writing(session, Some(agent))?;
    claim_next(&writing, wanted, ttl, deadline).await
}

async fn claim_one(writing: &Writing, seq: Seq, ttl: Ttl) -> Result<Outcome, Failure> {
    // The answer has the request.
    writing.call.caller().needs(Scope::Read)?;
    let shape = move |receipt: &Receipt| {
        let board::Answer::Claimed { claim, won } = &receipt.answer else {
            return Facts::new().put("claimed", &false);
        };
        claimed(Facts::new().put("renewed", &!won), &receipt.board, seq, claim)
    };
    let command = Command::Request(seq, RequestCommand::Claim { ttl });
    Ok(writing.run(command, Vec::new(), shape).await?.into())
}

async fn claim_next(
    writing: &Writing,
    wanted: Wanted,
    ttl: Ttl,
    deadline: Instant,
) -> Result<Outcome, Failure> {
    writing.permits(&Command::ClaimNext { wanted: wanted.clone(), from: Seq(0), ttl })?;
    let Writing { call, session, terms } = writing;
    // A worker may be there before its session.
    let exists = call.wait_for(session, deadline, |board| Ok(board.map(|_| ()))).await?;
    if exists.is_none() {
        let next = "not yet: the session does not exist; call claim_request again to wait for it";
        return Ok(Facts::new().put("claimed", &false).next(next).into());
    }
    let wait = Wait { deadline, given_up: call.gone.clone() };
    let shape = Arc::new(|receipt: &Receipt| {
        let board::Answer::Next(Some((seq, claim))) = &receipt.answer else {
            return nothing_to_claim(&receipt.board);
        };
        claimed(Facts::new(), &receipt.board, *seq, claim)
    });
    let keep = writing.keep(&shape);
    let next = NextClaim { wanted, ttl };
    let reply = session.claim_next(terms, &next, Some(wait), keep).await;
    Ok(writing.told(reply, &*shape)?.into())
}

fn claimed(facts: Facts, board: &Board, seq: Seq, claim: &Claim) -> Facts {
    let entry = board.log(&LogName::Requests).and_then(|log| log.get(seq));
    let item =
        entry.map_or_else(|| "null".to_owned(), |entry| cut(entry.item.text(), ITEM_BYTES_MAX));
    let next = format!(
        "do the work, then finish_request with seq={seq} and fence={}; if it takes longer, claim_request with seq={seq} \
         renews the claim",
        claim.fence
    );
    facts
        .put("claimed", &true)
        .put("seq", &seq)
        .put("fence", &claim.fence)
        .put("expires_at", &claim.expires_at.to_string())
        .next(&next)
        .board_data(&Facts::new().put_json("request", &item))
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
        .put("claimable", &board.tasks().claimable().len())
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
    let fence = call.arguments.take("fence");
    let fence = fence.map(|fence| fence_member(&pointer("fence"), &fence)).transpose()?;
    let failed = call.arguments.flag("failed")?;
    let result = value(&mut call, "result")?;
    let reason = value(&mut call, "reason")?;
    let command = match (failed, result, reason) {
        (false, result, None) => RequestCommand::Finish { fence, result },
        (true, None, reason) => RequestCommand::Fail { fence, reason },
        (false, _, Some(_)) => {
            let why = "goes with failed=true; a finished request has a 'result'";
            return Err(invalid_field(pointer("reason"), why).into());
        }
        (true, Some(_), _) => {
            let why = "goes with a finished request; a failed one has a 'reason'";
            return Err(invalid_field(pointer("result"), why).into());
        }
    };
    let writing = call.writing(session, agent)?;
    let shape = move |receipt: &Receipt| {
        let facts = Facts::new().put("seq", &seq);
        let log = receipt.board.log(&LogName::Requests);
        let entry = log.and_then(|log| log.get(seq));
        let is_claimable = entry.is_some_and(|entry| entry.is_claimable());
        let facts = match failed {
            false => facts.put("done", &true),
            true => facts.put("failed", &true).put("claimable_again", &is_claimable),
        };
        facts.put("revision", &receipt.board.revision())
    };
    Ok(writing.run(Command::Request(seq, command), Vec::new(), shape).await?.into())
}

fn value(call: &mut Call, name: &'static str) -> Result<Option<board::Json>, Failure> {
    let value = call.arguments.take(name);
    Ok(value.map(|value| result_member(&pointer(name), &value)).transpose()?)
}
