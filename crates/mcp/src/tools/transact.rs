//! Several writes in one commit.

use futures_util::FutureExt as _;

use super::state::quoted;
use crate::call::answer::{Facts, Failure};
use crate::call::arguments::missing;
use crate::call::{Call, Outcome, Running};
use blackboard_api::ops::transactions::{Read, Transacting};
use blackboard_board::Command;
use blackboard_service::Receipt;

pub(crate) fn transact(call: Call) -> Running {
    run(call).boxed()
}

async fn run(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let transacting: Transacting = call.input().await?;
    if transacting.then.is_none() {
        return Err(missing("then").into());
    }
    let writing = call.writing(session.clone(), agent)?;
    let Read { transaction, names, images } = transacting.of(&session, |tag| quoted(&tag))?;
    let command = Command::Transact(Box::new(transaction));
    let shape = move |receipt: &Receipt| {
        let facts = Facts::new();
        let revision = receipt.board.revision();
        let Some((succeeded, results)) = names.shown(&receipt.answer) else {
            return facts.put("revision", &revision);
        };
        let facts =
            facts.put("succeeded", &succeeded).put("revision", &revision).put("results", &results);
        if succeeded {
            facts
        } else {
            facts.next("a test did not hold, so 'else' was applied; read again, then decide anew")
        }
    };
    Ok(writing.run(command, images, shape).await?.into())
}
