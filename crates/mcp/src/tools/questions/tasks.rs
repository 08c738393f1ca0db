//! Questions as tasks of the protocol.
//!
//! The board is the task's memory: a task is its question. So tasks outlive the server, and need no table.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{
    CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;

use super::{Asked, answer_facts, question};
use crate::call::Call;
use crate::call::Outcome;
use crate::call::answer::{Answer, Failure};
use crate::call::visit::Visit;
use blackboard_api::refusal::{Refusal, invalid_field, no_session};
use blackboard_auth::Scope;
use blackboard_board::{Board, Code, Command, Entry, LogCommand, LogName, Seq, SessionName};
use blackboard_service::{Service, Unreachable};

/// The interval at which a client should look.
const POLL_MS: u64 = 2_000;

/// The first characters of an id.
const PREFIX: &str = "question.";

/// Returns a question as a task under way.
pub(crate) async fn of_question(call: &Call, asked: &Asked) -> Result<Outcome, Failure> {
    let published = call.published(&asked.session).await?;
    let entry = question(&published.board, asked.seq)?;
    let task = task(&id_of(asked.session.name(), asked.seq), entry, TaskStatus::Working);
    Ok(Outcome::Task(Box::new(CreateTaskResult::new(task))))
}

fn task(id: &str, entry: &Entry, status: TaskStatus) -> Task {
    let updated = entry.updated.as_ref().map_or(entry.at, |updated| updated.at);
    let task = Task::new(id, status, entry.at.to_string(), updated.to_string());
    let is_open = status == TaskStatus::Working;
    let message = if is_open { "waiting for a person's answer" } else { "the question has ended" };
    task.with_poll_interval_ms(POLL_MS).with_status_message(message)
}

fn id_of(session: &SessionName, seq: Seq) -> String {
    format!("{PREFIX}{}.{seq}", URL_SAFE_NO_PAD.encode(session.as_str()))
}

fn unknown() -> Refusal {
    Refusal::new(Code::EntryNotFound, "no such task")
}

/// Returns true if a question had this place, whether or not it is still there.
fn was_asked(board: &Board, seq: Seq) -> bool {
    seq > Seq(0) && board.log(&LogName::Questions).is_some_and(|log| seq <= log.last_seq())
}

/// Returns the question of a task, which the caller may reach.
async fn asked_of(service: &Service, visit: &Visit, id: &str) -> Result<Asked, Failure> {
    let (session, seq) =
        id.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('.')).ok_or_else(unknown)?;
    let session = URL_SAFE_NO_PAD.decode(session).map_err(|_| unknown())?;
    let session = SessionName::from_bytes(&session).ok_or_else(unknown)?;
    let seq = seq.parse().map(Seq).map_err(|_| unknown())?;
    // A task has one id: `01` is not another way to write `1`.
    if id_of(&session, seq) != id {
        return Err(unknown().into());
    }
    match service.session(&visit.caller, &session).await {
        Ok(session) => Ok(Asked { session, seq }),
        Err(Unreachable::Hidden(_)) => Err(unknown().into()),
        Err(why) => Err(why.into()),
    }
}

/// Returns the state of a task.
pub(crate) async fn get(
    service: &Service,
    visit: &Visit,
    id: &str,
) -> Result<GetTaskResult, Failure> {
    let asked = asked_of(service, visit, id).await?;
    visit.caller.needs(Scope::Read)?;
    let published = asked.session.published().await?;
    let published = published.ok_or_else(|| no_session(asked.session.name()))?;
    let Ok(entry) = question(&published.board, asked.seq) else {
        if !was_asked(&published.board, asked.seq) {
            return Err(unknown().into());
        }
        let now = service.now().to_string();
        let gone = Task::new(id, TaskStatus::Cancelled, now.clone(), now);
        return Ok(GetTaskResult::new(DetailedTask::new(gone, TaskPayload::Cancelled)));
    };
    let (status, payload) = match entry.item.get("answer") {
        None => (TaskStatus::Working, TaskPayload::Working),
        Some(_) => {
            let result = Answer::from(answer_facts(entry)).into_result(visit.structured);
            let result = match serde_json::to_value(result) {
                Ok(Value::Object(result)) => result,
                Ok(_) | Err(_) => JsonObject::new(),
            };
            (TaskStatus::Completed, TaskPayload::Completed { result })
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(id, entry, status), payload)))
}

/// Withdraws the question of a task, unless it was answered.
pub(crate) async fn cancel(mut call: Call, id: &str) -> Result<(), Failure> {
    let asked = asked_of(&call.service, &call.visit, id).await?;
    let agent = call.agent()?;
    let published = call.published(&asked.session).await?;
    let Ok(entry) = question(&published.board, asked.seq) else {
        // A question that was withdrawn stays so.
        let ended = was_asked(&published.board, asked.seq);
        return if ended { Ok(()) } else { Err(unknown().into()) };
    };
    if entry.item.get("answer").is_some() {
        return Ok(());
    }
    if entry.agent.is_some() && entry.agent != agent {
        let why = "only the agent that asked may withdraw the question";
        return Err(invalid_field("/taskId".to_owned(), why).into());
    }
    let seq = asked.seq;
    let writing = call.writing(asked.session, agent)?;
    let command = Command::Log(LogName::Questions, LogCommand::DeleteEntry { seq });
    let told = |_: &_| crate::call::answer::Facts::new();
    writing.run(command, Vec::new(), told).await.map(|_| ())
}
