//! Completion of the arguments of prompts and of resource templates.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo};

use super::call::visit::Visit;
use blackboard_api::inbox::listing;
use blackboard_auth::Scope;
use blackboard_board::{LogName, SessionName, StatePath};
use blackboard_service::Service;

/// Returns the values of an argument that begin as the client's user has begun.
pub(super) async fn complete(
    service: &Service,
    visit: &Visit,
    request: &CompleteRequestParams,
) -> CompleteResult {
    if !visit.caller.may(Scope::Read) {
        return CompleteResult::default();
    }
    let begun = request.argument.value.as_str();
    let max = CompletionInfo::MAX_VALUES;
    let values = match request.argument.name.as_str() {
        "session" => {
            let begun = listing(begun, &[], &visit.caller);
            let found = service.listed(begun, None, max + 1).await.unwrap_or_default();
            found.iter().map(|found| found.summary.name.to_string()).collect()
        }
        name => {
            let context = request.context.as_ref();
            let session = context.and_then(|context| context.get_argument("session"));
            let session =
                session.and_then(|name| name.parse().ok()).or_else(|| visit.session.clone());
            match session {
                Some(session) => of_session(service, visit, &session, name, begun, max + 1).await,
                None => Vec::new(),
            }
        }
    };
    let more = values.len() > max;
    let shown: Vec<String> = values.into_iter().take(max).collect();
    let info = CompletionInfo::with_pagination(shown, None, more).unwrap_or_default();
    CompleteResult::new(info)
}

async fn of_session(
    service: &Service,
    visit: &Visit,
    session: &SessionName,
    name: &str,
    begun: &str,
    max: usize,
) -> Vec<String> {
    let Ok(session) = service.session(&visit.caller, session).await else { return Vec::new() };
    let Ok(Some(published)) = session.published().await else { return Vec::new() };
    let board = &published.board;
    let starts = |text: &String| text.starts_with(begun);
    match name {
        "agent" | "to" => {
            let registered = board.agents().keys().map(ToString::to_string);
            let remembering = board.memories().keys().map(ToString::to_string);
            let mut names: Vec<String> = registered.chain(remembering).filter(starts).collect();
            names.sort_unstable();
            names.dedup();
            names.truncate(max);
            names
        }
        "seq" => {
            let log = board.log(&LogName::Screenshots);
            let seqs = log.into_iter().flat_map(|log| log.iter().rev());
            seqs.map(|entry| entry.seq.to_string()).filter(starts).take(max).collect()
        }
        "path" => paths(&board.state().value(&StatePath::root()), begun, max),
        _ => Vec::new(),
    }
}

/// Returns the keys at the level that is being typed.
fn paths(root: &Option<blackboard_board::StateValue>, begun: &str, max: usize) -> Vec<String> {
    let (above, last) = begun.rsplit_once('/').unwrap_or(("", begun));
    let mut value = root.clone();
    for name in above.split('/').filter(|name| !name.is_empty()) {
        value = value.and_then(|value| value.member(name));
    }
    let Some(value) = value else { return Vec::new() };
    let prefix = if above.is_empty() { String::new() } else { format!("{above}/") };
    let names = value.members().map(|(name, _)| name).filter(|name| name.starts_with(last));
    names.take(max).map(|name| format!("{prefix}{name}")).collect()
}
