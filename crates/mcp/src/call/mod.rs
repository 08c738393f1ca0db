//! A call of a tool: session, agent, writes, waits and progress.

pub(crate) mod answer;
pub(crate) mod arguments;
mod outcome;
pub(crate) mod schema;
pub(crate) mod visit;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{InputResponses, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};
use tokio_util::sync::CancellationToken;

use blackboard_api::fingerprint::Fingerprint;
use blackboard_api::intake::input::Input;
use blackboard_api::offload::work;
use blackboard_api::ops::{NotWritten, WriteCall};
use blackboard_api::refusal::{Refusal, invalid_field, no_session};
use blackboard_auth::{Caller, Scope};
use blackboard_board::{
    AgentName, Board, Code, Command, Json, KEY_CHARS_MAX, Key, SessionName, Terms,
};
use blackboard_service::{
    ImageBytes, Keep, Published, Receipt, Reply, Service, SessionHandle, SessionWait, Unreachable,
};

use answer::{Facts, Failure};
use arguments::{Arguments, missing, pointer};
pub(crate) use outcome::{Outcome, Running};
use visit::Visit;

/// The time that a call waits by default. Hosts drop results after a minute.
const WAIT_S_DEFAULT: u64 = 25;

/// The longest wait of a call.
const WAIT_S_MAX: u64 = 50;

/// The interval between two notices of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// A call of a tool.
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) visit: Visit,
    pub(crate) arguments: Arguments,
    pub(crate) tool: &'static str,
    /// Cancelled when nobody waits for the answer any more.
    pub(crate) gone: CancellationToken,
    pub(crate) client: Client,
}

/// The abilities of a call's client, and its state from an earlier call.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// True if it follows tasks.
    pub(crate) takes_tasks: bool,
    /// True if it asks its own user.
    pub(crate) elicits: bool,
    /// The state of an earlier call that needed input.
    pub(crate) state: Option<String>,
    /// The input.
    pub(crate) inputs: Option<InputResponses>,
}

impl Call {
    /// Begins a call.
    pub(crate) fn new(
        service: Service,
        visit: Visit,
        tool: &'static str,
        arguments: Arguments,
        client: Client,
    ) -> Self {
        let gone = visit.departed.clone();
        Self { service, visit, arguments, tool, gone, client }
    }

    /// Returns the caller.
    pub(crate) fn caller(&self) -> &Caller {
        &self.visit.caller
    }

    /// Takes the session: the argument, else the default of the address or of the token.
    pub(crate) async fn session(&mut self) -> Result<SessionHandle, Failure> {
        match self.optional_session().await? {
            Some(session) => Ok(session),
            None => Err(missing("session").into()),
        }
    }

    /// Takes the session, if one is named.
    pub(crate) async fn optional_session(&mut self) -> Result<Option<SessionHandle>, Failure> {
        let named = self.arguments.parsed("session")?.or_else(|| self.visit.session.clone());
        match named {
            Some(session) => Ok(Some(self.reach(&session).await?)),
            None => Ok(None),
        }
    }

    /// Returns the session of this name.
    pub(crate) async fn reach(&self, name: &SessionName) -> Result<SessionHandle, Unreachable> {
        self.service.session(self.caller(), name).await
    }

    /// Takes the agent that calls, if it is known.
    pub(crate) fn agent(&mut self) -> Result<Option<AgentName>, Failure> {
        let named: Option<AgentName> = self.arguments.parsed("agent")?;
        match (self.caller().agent(), named) {
            (Some(own), Some(named)) if *own != named => {
                let why = format!("the token is bound to {own}; leave 'agent' out");
                Err(invalid_field(pointer("agent"), why).into())
            }
            (Some(own), _) => Ok(Some(own.clone())),
            (None, Some(named)) => Ok(Some(named)),
            (None, None) => Ok(self.visit.agent().cloned()),
        }
    }

    /// Takes the agent that calls.
    pub(crate) fn need_agent(&mut self) -> Result<AgentName, Failure> {
        let none =
            || Refusal::new(Code::AgentRequired, "this tool needs to know which agent calls");
        Ok(self.agent()?.ok_or_else(none)?)
    }

    /// Takes the calling agent, or another that is named as `of`.
    pub(crate) fn owner(&mut self) -> Result<AgentName, Failure> {
        let of = self.arguments.parsed("of")?;
        let own = self.agent()?;
        let none = || Refusal::new(Code::AgentRequired, "name the agent that you want as 'of'");
        Ok(of.or(own).ok_or_else(none)?)
    }

    /// Takes the end of a wait.
    pub(crate) fn deadline(&mut self) -> Result<Instant, Failure> {
        let wait = self.arguments.whole("wait_s", 0, WAIT_S_MAX)?.unwrap_or(WAIT_S_DEFAULT);
        Ok(Instant::now() + Duration::from_secs(wait))
    }

    /// Takes the input of an operation, in the client's turn if it is large.
    pub(crate) async fn input<I: Input + Send + 'static>(&mut self) -> Result<I, Refusal> {
        let mut arguments = std::mem::replace(&mut self.arguments, Arguments::none());
        let read = work(arguments.bytes(), move || Ok((I::take(&mut arguments)?, arguments)));
        let input;
        (input, self.arguments) = read.await?;
        Ok(input)
    }

    /// Refuses arguments that are left.
    pub(crate) fn finish(&mut self) -> Result<(), Refusal> {
        std::mem::replace(&mut self.arguments, Arguments::none()).finish()
    }

    /// Returns a session's board, if the caller may read it.
    pub(crate) async fn published(&self, session: &SessionHandle) -> Result<Published, Failure> {
        self.caller().needs(Scope::Read)?;
        let published = session.published().await?;
        Ok(published.ok_or_else(|| no_session(session.name()))?)
    }

    /// Prepares a write: takes the key, and refuses arguments that are left.
    pub(crate) fn writing(
        mut self,
        session: SessionHandle,
        agent: Option<AgentName>,
    ) -> Result<Writing, Failure> {
        let key = self.key(agent.as_ref())?;
        self.finish()?;
        let terms = Terms { author: agent, key, trace: self.visit.trace, ..Terms::default() };
        Ok(Writing { call: self, write: WriteCall::new(session, terms) })
    }

    /// Takes the idempotency key, with the fingerprint of all that a repeat has in common with the first call.
    fn key(&mut self, agent: Option<&AgentName>) -> Result<Option<Key>, Failure> {
        let Some(key) = self.arguments.string("idempotency_key")? else { return Ok(None) };
        let visible = key.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !visible || !(1..=KEY_CHARS_MAX).contains(&key.len()) {
            let why = format!("expected 1 to {KEY_CHARS_MAX} printable ASCII characters");
            return Err(invalid_field(pointer("idempotency_key"), why).into());
        }
        let mut all = Fingerprint::default();
        let author = agent.map_or("", AgentName::as_str);
        for part in ["mcp", self.tool, author] {
            all.say(part.as_bytes());
        }
        all.say(&self.caller().identity().unwrap_or_default());
        all.say(&self.arguments.said());
        Ok(Some(Key { key: key.as_str().into(), fingerprint: all.digest() }))
    }

    /// Looks at a session, and again after each of its changes, until there is something, the deadline is reached, or
    /// nobody waits any more.
    pub(crate) async fn wait_for<T>(
        &self,
        session: &SessionHandle,
        deadline: Instant,
        mut look: impl FnMut(Option<&Arc<Board>>) -> Result<Option<T>, Failure> + Send,
    ) -> Result<Option<T>, Failure> {
        self.caller().needs(Scope::Read)?;
        let mut waiting = self.waiting(session, deadline);
        loop {
            let now = session.published().await?;
            if let Some(found) = look(now.as_ref().map(|now| &now.board))? {
                return Ok(Some(found));
            }
            drop(now);
            if !waiting.goes_on().await? {
                return Ok(None);
            }
        }
    }

    /// Begins a wait for changes of a session.
    pub(crate) const fn waiting<'a>(
        &'a self,
        session: &'a SessionHandle,
        deadline: Instant,
    ) -> Waiting<'a> {
        Waiting { call: self, session, deadline, wait: None }
    }
}

/// A wait of a call for changes of a session.
pub(crate) struct Waiting<'a> {
    call: &'a Call,
    session: &'a SessionHandle,
    deadline: Instant,
    wait: Option<SessionWait>,
}

impl Waiting<'_> {
    /// Waits for a change, or for the deadline. Returns false if there is nothing more to look for: after the deadline, or if
    /// nobody waits any more.
    pub(crate) async fn goes_on(&mut self) -> Result<bool, Failure> {
        let gone = &self.call.gone;
        if gone.is_cancelled() || Instant::now() >= self.deadline {
            return Ok(false);
        }
        let Some(waiting) = &mut self.wait else {
            // Changes before the wait began are seen by one more look.
            self.wait = Some(self.session.wait()?);
            return Ok(true);
        };
        let changed = tokio::select! {
            changed = timeout_at(self.deadline, waiting.changed()) => changed,
            () = gone.cancelled() => return Ok(false),
        };
        // A write before the wait is reported, though the rights have ended meanwhile.
        Ok(!matches!(changed, Ok(Ok(false) | Err(_))))
    }
}

/// A write of a call.
pub(crate) struct Writing {
    pub(crate) call: Call,
    pub(crate) write: WriteCall,
}

impl Writing {
    /// Carries out the command, and tells its facts.
    pub(crate) async fn run(
        &self,
        command: Command,
        images: Vec<ImageBytes>,
        shape: impl Fn(&Receipt) -> Facts + Send + Sync + 'static,
    ) -> Result<Facts, Failure> {
        let shape = Arc::new(shape);
        let reply = self.write.run(command, images, self.keep(&shape)).await;
        self.told(reply, &*shape)
    }

    /// Returns the function that makes the facts to store with the key, if there is one.
    pub(crate) fn keep<S>(&self, shape: &Arc<S>) -> Option<Keep>
    where
        S: Fn(&Receipt) -> Facts + Send + Sync + 'static,
    {
        let shape = Arc::clone(shape);
        self.write.keep(move |receipt| {
            let text = shape(receipt).as_str().to_owned();
            serde_json::value::RawValue::from_string(text).ok().map(Json::from)
        })
    }

    /// Tells the facts of a write, or of the write that it repeats.
    pub(crate) fn told(
        &self,
        reply: Result<Reply, NotWritten>,
        shape: &dyn Fn(&Receipt) -> Facts,
    ) -> Result<Facts, Failure> {
        match reply? {
            Reply::Now(receipt) => Ok(shape(&receipt)),
            Reply::Before(kept) => Ok(Facts::again(kept.text())),
        }
    }
}

/// Reports to a client that a call is still under way, if it asked for that.
#[derive(Default)]
pub(crate) struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    /// Reports to the client of a request.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self(context.meta.get_progress_token().map(|token| (context.peer.clone(), token)))
    }

    /// Sends notices until it is dropped.
    pub(crate) async fn tell(&self) -> Infallible {
        let Some((peer, token)) = &self.0 else { return std::future::pending().await };
        let mut ticks = interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = 0.0;
        loop {
            ticks.tick().await;
            told += PROGRESS_EVERY.as_secs_f64();
            let progress = ProgressNotificationParam::new(token.clone(), told)
                .with_message("waiting for a change of the board");
            if peer.notify_progress(progress).await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
