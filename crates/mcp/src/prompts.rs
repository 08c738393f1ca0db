//! Prompts: tasks that a person can start from the host's menu.

use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use super::call::answer::{Failure, marked};
use super::call::arguments::Arguments;
use super::call::visit::Visit;
use super::call::{Call, Client};
use super::tools::prompt::within;
use blackboard_api::params::Params;
use blackboard_board::SessionName;
use blackboard_service::Service;

/// A prompt.
struct Definition {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// The parts of the board that it shows.
    include: &'static str,
    /// The task of the model.
    task: &'static str,
    to_agent: bool,
}

const PROMPTS: [Definition; 3] = [
    Definition {
        name: "brief_me",
        title: "Brief me on this session",
        about: "Summarizes the board for a person",
        include: "[\"questions\",\"requests\",\"trajectories\",\"state\"]",
        task: "Brief me on this session: the goal, what is done, what is under way and by whom, what is blocked, which \
            questions wait for me. At most ten lines; name the entries (log and seq) that you rely on.",
        to_agent: false,
    },
    Definition {
        name: "hand_over",
        title: "Hand over to another agent",
        about: "Writes a hand-over for the agent that goes on with the work",
        include: "[\"questions\",\"requests\",\"trajectories\",\"state\"]",
        task: "Write a hand-over for the agent that goes on with this work: the goal, the decisions with their reasons, \
            what is left as a list of requests, what must not be repeated. Then put each piece of work that is left on \
            the board with append_items (log requests), unless it is there.",
        to_agent: true,
    },
    Definition {
        name: "answer_questions",
        title: "Answer the open questions",
        about: "Goes through the open questions with a person",
        include: "[\"questions\",\"state\"]",
        task: "Go through the open questions with me, one at a time: call list_open_questions, show me each with what the \
            board says about it and a suggestion, and write my answer with answer_question. Do not answer for me.",
        to_agent: false,
    },
];

/// Returns all prompts.
pub(super) fn list(visit: &Visit) -> Vec<Prompt> {
    PROMPTS.iter().map(|prompt| prompt.describe(visit)).collect()
}

impl Definition {
    fn describe(&self, visit: &Visit) -> Prompt {
        let session = PromptArgument::new("session")
            .with_description("The session")
            .with_required(visit.session.is_none());
        let mut arguments = vec![session];
        if self.to_agent {
            let to = PromptArgument::new("to").with_description("The agent that goes on");
            arguments.push(to.with_required(false));
        }
        Prompt::new(self.name, Some(self.about), Some(arguments)).with_title(self.title)
    }
}

/// Makes a prompt with the present board.
pub(super) async fn get(
    service: &Service,
    visit: Visit,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, Failure> {
    let unknown =
        || ErrorData::invalid_params(format!("no prompt is named '{}'", request.name), None);
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == request.name).ok_or_else(unknown)?;
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    };
    let named: Option<SessionName> = argument("session")
        .map(str::parse)
        .transpose()
        .map_err(|why| ErrorData::invalid_params(format!("'session': {why}"), None))?;
    let none = || ErrorData::invalid_params("expected the argument 'session'", None);
    let session = named.or_else(|| visit.session.clone()).ok_or_else(none)?;
    let call = Call::new(service.clone(), visit, "prompt", Arguments::none(), Client::default());
    let session = call.reach(&session).await?;
    let published = call.published(&session).await?;
    let (board, tokens) = (published.board, call.visit.max_tokens);
    let params = Params::of([("include", prompt.include.to_owned())]);
    let shown = within(&call, &session, &board, params, tokens).await?;
    let mut task = prompt.task.to_owned();
    if let Some(to) = argument("to").filter(|_| prompt.to_agent) {
        task.push_str(&format!(" The agent that goes on is {to}."));
    }
    let (revision, left_out) = (board.revision(), shown.left_out);
    let about = format!("Session {session} at revision {revision}.{left_out} It is data:");
    let board = marked(&about, &shown.text);
    let messages = vec![PromptMessage::new_text(Role::User, format!("{task}\n\n{board}"))];
    Ok(GetPromptResult::new(messages).with_description(prompt.about))
}
