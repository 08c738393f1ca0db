//! Questions that the host puts to its own user (elicitation).
//!
//! The question stands on the board first, so that anybody may answer it meanwhile. The state that the client carries to
//! its next call is signed, and bound to the question, the caller and a deadline.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequiredResult,
};
use serde_json::Value;

use super::{Asked, answer_facts, ended, not_yet, question, waited};
use crate::call::Call;
use crate::call::Outcome;
use crate::call::answer::{Facts, Failure};
use blackboard_api::ops::questions::Answering;
use blackboard_api::refusal::{Refusal, invalid_field, no_session};
use blackboard_auth::Caller;
use blackboard_board::{AgentName, Code, Seq, SessionId, SessionName, json};
use blackboard_service::SessionHandle;

/// The domain of signatures: the first bytes of each signed message.
const DOMAIN: &[u8] = b"blackboard question of a host 1\n";

/// The time for the host's user to answer.
const LIFE_MS: i64 = 60 * 60 * 1000;

/// The name of the question among the inputs that are asked for.
const INPUT: &str = "answer";

/// Returns the outcome that has the host ask its user.
pub(crate) fn put(
    call: &Call,
    asked: &Asked,
    agent: Option<&AgentName>,
    question: &str,
) -> Outcome {
    let schema = ElicitationSchema::builder().required_string(INPUT).build();
    let Ok(requested_schema) = schema else { return not_yet(asked.seq).into() };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.to_owned(),
        requested_schema,
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let expires = call.service.now().0.saturating_add(LIFE_MS);
    let Some(id) = session_id(&asked.session) else { return not_yet(asked.seq).into() };
    let state = State { session: asked.session.name(), id, seq: asked.seq, expires };
    let sealed = state.seal(call, agent);
    let inputs = BTreeMap::from([(INPUT.to_owned(), request)]);
    Outcome::Input(Box::new(InputRequiredResult::new(Some(inputs), Some(sealed))))
}

/// Takes the answer of the host's user, and writes it to the board.
pub(crate) async fn answered(mut call: Call, sealed: &str) -> Result<Outcome, Failure> {
    let agent = call.agent()?;
    let session = State::session(sealed)?;
    let session = call.reach(&session).await?;
    let seq = State::open(&call, agent.as_ref(), &session, sealed)?;
    let named = call.arguments.parsed("session")?.or_else(|| call.visit.session.clone());
    let is_another = named.is_some_and(|named| named != *session.name())
        || call.arguments.whole("seq", 1, u64::MAX)?.is_some_and(|named| named != seq.0);
    if is_another {
        return Err(mismatched().into());
    }
    let input = call.client.inputs.as_ref().and_then(|inputs| inputs.get(INPUT)).cloned();
    let deadline = call.deadline()?;
    let asked = call.arguments.string("question")?;
    call.arguments = crate::call::arguments::Arguments::none();
    let published = call.published(&session).await?;
    let entry = question(&published.board, seq)?;
    if asked.is_some_and(|asked| entry.item.get("question").map(json::decode) != Some(asked.into()))
    {
        return Err(mismatched().into());
    }
    if entry.item.get("answer").is_some() {
        // Somebody else was faster.
        return Ok(answer_facts(entry).into());
    }
    let action = input.as_ref().and_then(|input| input.get("action")).and_then(Value::as_str);
    let answering = match action {
        Some("accept") => {
            let content = input.as_ref().and_then(|input| input.get("content"));
            let answer = content.and_then(|content| content.get(INPUT)).and_then(Value::as_str);
            let answer = answer.filter(|answer| !answer.trim().is_empty());
            let none = || invalid_field("/inputResponses".to_owned(), "expected an answer");
            Answering { answer: Some(answer.ok_or_else(none)?.to_owned()), skip: None }
        }
        // It is this user who declines, or a host that has none: the question is for others too.
        Some("decline") => return Ok(declined(seq).into()),
        Some(other) if other != "cancel" => {
            let why = "expected the action accept, decline or cancel";
            return Err(invalid_field("/inputResponses".to_owned(), why).into());
        }
        // A host without a user cancels at once: somebody else may answer on the board.
        _ => return waited(&call, Asked { session, seq }, deadline).await,
    };
    ended(call, session.clone(), agent, seq, answering).await?;
    let published = session.published().await?.ok_or_else(|| no_session(session.name()))?;
    Ok(answer_facts(question(&published.board, seq)?).into())
}

/// Tells that the host's user does not answer.
fn declined(seq: Seq) -> Facts {
    let next = format!(
        "the host's user declined; the question stays open for others: call ask_person with seq={seq} to wait, or go on without an answer"
    );
    Facts::new().put("seq", &seq).put("answered", &false).put("declined", &true).next(&next)
}

fn session_id(session: &SessionHandle) -> Option<SessionId> {
    session.extent().ok()?.map(|extent| extent.session)
}

/// The state between two calls.
struct State<'a> {
    session: &'a SessionName,
    id: SessionId,
    seq: Seq,
    expires: i64,
}

impl State<'_> {
    /// Returns the bytes to sign. All parts but the last have a length, so that no two states have the same bytes.
    fn message(&self, call: &Call, agent: Option<&AgentName>) -> Vec<u8> {
        let principal = principal(call.caller());
        let agent = agent.map_or("", AgentName::as_str);
        let mut message = DOMAIN.to_vec();
        message.extend(self.id.0.as_bytes());
        message.extend(self.seq.0.to_be_bytes());
        message.extend(self.expires.to_be_bytes());
        for part in [principal.as_str(), agent, self.session.as_str()] {
            message.extend((part.len() as u64).to_be_bytes());
            message.extend(part.as_bytes());
        }
        message
    }

    fn seal(&self, call: &Call, agent: Option<&AgentName>) -> String {
        let signature =
            URL_SAFE_NO_PAD.encode(call.service.signing_key().sign(&self.message(call, agent)));
        let session = URL_SAFE_NO_PAD.encode(self.session.as_str());
        format!("{session}.{}.{}.{signature}", self.seq, self.expires)
    }

    /// Returns the session that a state names, whoever made the state.
    fn session(sealed: &str) -> Result<SessionName, Refusal> {
        let (session, _) = sealed.split_once('.').ok_or_else(forged)?;
        let session = URL_SAFE_NO_PAD.decode(session).map_err(|_| forged())?;
        SessionName::from_bytes(&session).ok_or_else(forged)
    }

    /// Returns the question of a state of this session, if the state is this caller's and still holds.
    fn open(
        call: &Call,
        agent: Option<&AgentName>,
        session: &SessionHandle,
        sealed: &str,
    ) -> Result<Seq, Refusal> {
        let mut parts = sealed.splitn(4, '.').skip(1);
        let mut part = || parts.next().ok_or_else(forged);
        let seq = part()?.parse().map(Seq).map_err(|_| forged())?;
        let expires: i64 = part()?.parse().map_err(|_| forged())?;
        let signature = URL_SAFE_NO_PAD.decode(part()?).map_err(|_| forged())?;
        let id = session_id(session).ok_or_else(forged)?;
        let state = State { session: session.name(), id, seq, expires };
        let holds = call.service.signing_key().has_signed(&state.message(call, agent), &signature)
            && call.service.now().0 < expires;
        if holds { Ok(seq) } else { Err(forged()) }
    }
}

fn forged() -> Refusal {
    let why = "this requestState is not one that this server gave to this caller, or has expired";
    Refusal::new(Code::InvalidParameter, why)
}

fn mismatched() -> Refusal {
    let why = "this requestState is of another session or question than the call";
    Refusal::new(Code::InvalidParameter, why)
}

/// Names the caller: its token, or anyone.
fn principal(caller: &Caller) -> String {
    caller.grant().map_or_else(String::new, |grant| grant.token().id.0.to_string())
}
