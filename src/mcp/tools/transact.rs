//! Several writes in one commit.

use futures_util::FutureExt as _;

use super::state::quoted;
use crate::api::offload::work;
use crate::api::ops::transactions::{self, Read};
use crate::api::tag::{Resource, version};
use crate::api::view::transaction::shown;
use crate::board::{self, Command, Extent, StatePath};
use crate::mcp::call::answer::{Facts, Failure};
use crate::mcp::call::arguments::missing;
use crate::mcp::call::{Call, Outcome, Running};
use crate::service::Receipt;

pub(crate) fn transact(call: Call) -> Running {
    run(call).boxed()
}

async fn run(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let mut body = String::from("{");
    let mut has_then = false;
    for name in ["if", "then", "else"] {
        if let Some(value) = call.arguments.take(name) {
            has_then |= name == "then";
            let comma = if body.len() > 1 { "," } else { "" };
            body.push_str(&format!("{comma}\"{name}\":{value}"));
        }
    }
    if !has_then {
        return Err(missing("then").into());
    }
    body.push('}');
    let writing = call.writing(session.clone(), agent)?;
    let service = writing.call.service.clone();
    let read = work(body.len(), move || {
        let versions = |tag: &str, path: &StatePath| {
            let resource = Resource::State(path.clone());
            let of =
                |now: Extent| version(&quoted(tag), false, service.epoch(), now.session, &resource);
            Ok(session.extent()?.and_then(of))
        };
        transactions::read(&body, &versions)
    });
    let Read { transaction, then, otherwise, images } = read.await?;
    let command = Command::Transact(Box::new(transaction));
    let shape = move |receipt: &Receipt| {
        let facts = Facts::new();
        let board::Answer::Transacted { succeeded, results } = &receipt.answer else {
            return facts.put("revision", &receipt.board.revision());
        };
        let operations = if *succeeded { &then } else { &otherwise };
        let results: Vec<_> = operations
            .iter()
            .zip(results)
            .map(|(operation, result)| shown(operation, result))
            .collect();
        let facts = facts
            .put("succeeded", succeeded)
            .put("revision", &receipt.board.revision())
            .put("results", &results);
        if *succeeded {
            facts
        } else {
            facts.next("a test did not hold, so 'else' was applied; read again, then decide anew")
        }
    };
    Ok(writing.run(command, images, shape).await?.into())
}
