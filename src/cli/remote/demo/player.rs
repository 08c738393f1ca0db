//! Deeds as writes to a server, each by its agent and under its claim.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::deed::{Deed, Fact, Question, Request};
use super::item;
use super::picture::Picture;
use super::story::{DRAFT, STORY};
use crate::api::address::{agent_url, entry_url, log_url, session_url, state_url};
use crate::board::{AgentName, LogName, Seq, SessionName};
use crate::cli::remote::body::{self, Written};
use crate::cli::remote::place::quoted;
use crate::cli::remote::query::Query;
use crate::cli::remote::refusal::Refusal;
use crate::cli::remote::repeat::Key;
use crate::cli::remote::server::{Received, Server, Write};

/// The longest time for which a server may be away, as for a restart.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// The pause before a write is repeated whose server is away.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The duration of a claim, longer than a run.
const CLAIM_TTL: &str = "2h";

/// The pauses for which a person has time to answer.
const ANSWER_PAUSES: u32 = 8;

/// A run of the story in a session.
pub(super) struct Player<'a> {
    server: &'a Server,
    session: &'a SessionName,
    draft: &'a SessionName,
    /// The time between two deeds.
    pause: Duration,
    steps: u64,
    requests: BTreeMap<&'static str, Seq>,
    questions: BTreeMap<&'static str, (Seq, &'static str)>,
    /// The request that an agent works on.
    claims: BTreeMap<&'static str, Claimed>,
    /// The screenshot of each agent that no step has named.
    seen: BTreeMap<&'static str, Seq>,
}

#[derive(Clone, Copy)]
struct Claimed {
    request: Seq,
    fence: u64,
}

/// The answer to a claim.
#[derive(Deserialize)]
struct Won {
    claim: body::Claim,
}

/// A question that has ended.
#[derive(Deserialize)]
struct Ended {
    item: Answer,
}

#[derive(Deserialize)]
struct Answer {
    answer: Option<String>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        server: &'a Server,
        session: &'a SessionName,
        draft: &'a SessionName,
        time: Duration,
    ) -> Self {
        let pauses = u32::try_from(STORY.len()).unwrap_or(u32::MAX).saturating_add(ANSWER_PAUSES);
        Self {
            server,
            session,
            draft,
            pause: time / pauses,
            steps: 0,
            requests: BTreeMap::new(),
            questions: BTreeMap::new(),
            claims: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Does what the story tells, from its beginning to its end.
    pub(super) async fn play(&mut self) -> Result<(), Refusal> {
        for (agent, deed) in STORY {
            sleep(self.pause).await;
            self.act(agent, deed).await?;
        }
        Ok(())
    }

    /// Reads the session as it is at the end.
    pub(super) async fn about(&self) -> Result<Received, Refusal> {
        let address = session_url(self.session);
        self.through(async || self.server.get(&address).await).await
    }

    async fn act(&mut self, agent: &'static str, deed: &Deed) -> Result<(), Refusal> {
        match deed {
            Deed::Register { kind, host, device } => self.register(agent, kind, host, device).await,
            Deed::Status(status) => {
                let body = format!("{{\"status\":{}}}", quoted(status));
                let address = agent_url(self.session, &agent_name(agent)?);
                self.write(agent, Write::json(Method::PATCH, address, body)).await.map(drop)
            }
            Deed::Facts(facts) => self.transact(agent, item::facts(facts)?).await,
            Deed::Request(request) => self.request(agent, request).await,
            Deed::Claim(key) => self.claim(agent, key).await,
            Deed::Finish(key, result) => self.end(agent, key, ("done", "result"), result).await,
            Deed::Fail(key, reason) => self.end(agent, key, ("failed", "reason"), reason).await,
            Deed::Step(step) => {
                self.steps += 1;
                let seen = self.seen.remove(agent);
                self.transact(agent, item::step(agent, self.steps, seen, step)?).await
            }
            Deed::Screenshot { picture, application, reason } => {
                self.screenshot(agent, *picture, application, reason).await
            }
            Deed::Ask(question) => self.ask(agent, question).await,
            Deed::Await { question, fact } => self.answer(agent, question, fact).await,
            Deed::Checkpoint(name) => {
                let address = format!("{}/checkpoints", session_url(self.session));
                let body = format!("{{\"name\":{}}}", quoted(name));
                self.write(agent, Write::json(Method::POST, address, body)).await.map(drop)
            }
            Deed::Fork { checkpoint, fact } => self.fork(agent, checkpoint, *fact).await,
        }
    }

    async fn register(
        &self,
        agent: &str,
        kind: &str,
        host: &str,
        device: &str,
    ) -> Result<(), Refusal> {
        let [kind, host, device] = [kind, host, device].map(quoted);
        let body = format!(
            "{{\"type\":{kind},\"platform\":\"windows\",\"host\":{host},\"device\":{device},\
             \"status\":\"CONTINUE\"}}"
        );
        let address = agent_url(self.session, &agent_name(agent)?);
        self.write(agent, Write::json(Method::PUT, address, body)).await.map(drop)
    }

    async fn request(&mut self, agent: &str, request: &Request) -> Result<(), Refusal> {
        let after: Vec<String> =
            request.after.iter().map(|key| self.seq(key).to_string()).collect();
        let query = Query::of(log_url(self.session, &LogName::Requests))
            .with("after", (!after.is_empty()).then(|| after.join(",")))
            .with("attempts", Some(request.attempts));
        let seq = self.append(agent, query.address(), item::request(request)?).await?;
        self.requests.insert(request.key, seq);
        Ok(())
    }

    async fn claim(&mut self, agent: &'static str, key: &str) -> Result<(), Refusal> {
        let request = self.seq(key);
        let address = format!("{}/claim", entry_url(self.session, &LogName::Requests, request));
        let body = format!("{{\"ttl\":{}}}", quoted(CLAIM_TTL));
        let received = self.write(agent, Write::json(Method::PUT, address, body)).await?;
        let Won { claim } = received.read()?;
        self.claims.insert(agent, Claimed { request, fence: claim.fence });
        Ok(())
    }

    /// Ends the agent's claim, with a value.
    async fn end(
        &mut self,
        agent: &'static str,
        key: &str,
        (verb, member): (&str, &str),
        value: &str,
    ) -> Result<(), Refusal> {
        let request = self.seq(key);
        let claim = self.claims.remove(agent);
        let fence = claim.map(|claim| format!("\"fence\":{},", claim.fence)).unwrap_or_default();
        let address = format!("{}/{verb}", entry_url(self.session, &LogName::Requests, request));
        let body = format!("{{{fence}\"{member}\":{value}}}");
        self.write(agent, Write::json(Method::PUT, address, body)).await.map(drop)
    }

    /// Commits a transaction under the agent's claim, if it has one.
    async fn transact(&self, agent: &str, body: String) -> Result<(), Refusal> {
        let claim = self.claims.get(agent);
        let query = Query::of(format!("{}/transactions", session_url(self.session)))
            .with("claim", claim.map(|claim| claim.request))
            .with("fence", claim.map(|claim| claim.fence));
        self.write(agent, Write::json(Method::POST, query.address(), body)).await.map(drop)
    }

    /// Takes a screenshot, which the agent's next step names.
    async fn screenshot(
        &mut self,
        agent: &'static str,
        picture: Picture,
        application: &str,
        reason: &str,
    ) -> Result<(), Refusal> {
        let [shown, why] = [application, reason].map(quoted);
        let metadata = format!("{{\"screenshot application\":{shown},\"saving reason\":{why}}}");
        let path = format!("logs/{}/screenshot_{}.png", self.session, self.steps);
        let query = Query::of(log_url(self.session, &LogName::Screenshots))
            .with("metadata", Some(metadata))
            .with("image_path", Some(path));
        let write = Write {
            method: Method::POST,
            address: query.address(),
            media_type: "image/png",
            body: Bytes::from(picture.png()?),
        };
        let seq = self.made(agent, write).await?;
        self.seen.insert(agent, seq);
        Ok(())
    }

    async fn ask(&mut self, agent: &str, question: &Question) -> Result<(), Refusal> {
        let query = Query::of(log_url(self.session, &LogName::Questions))
            .with("expires", Some(question.expires))
            .with("default", Some(question.default));
        let seq = self.append(agent, query.address(), item::question(question)?).await?;
        self.questions.insert(question.key, (seq, question.default));
        Ok(())
    }

    /// Gives a question its default unless somebody answers first, and keeps the answer as a fact.
    async fn answer(&self, agent: &str, key: &str, fact: &str) -> Result<(), Refusal> {
        let Some((seq, default)) = self.questions.get(key) else { return Ok(()) };
        let address = entry_url(self.session, &LogName::Questions, *seq);
        let wait = (self.pause * ANSWER_PAUSES).min(Duration::from_secs(60)).as_millis().max(1);
        let until = Query::of(address.clone())
            .with("until", Some("answered"))
            .with("wait", Some(format!("{wait}ms")))
            .address();
        let answered = match self.through(async || self.server.get(&until).await).await {
            Err(Refusal::Refused { name, .. }) if name == "condition-not-met" => {
                let body = format!("{{\"answer\":{}}}", quoted(default));
                let write = Write::json(Method::PUT, format!("{address}/answer"), body);
                match self.write(agent, write).await {
                    Err(Refusal::Refused { name, .. }) if name == "already-answered" => {}
                    written => drop(written?),
                }
                self.through(async || self.server.get(&address).await).await?
            }
            answered => answered?,
        };
        let Ended { item } = answered.read()?;
        let answer = item.answer.map_or_else(|| quoted(default), |answer| quoted(&answer));
        let path = fact.parse().map_err(|_| Refusal::Address { path: fact.to_owned() })?;
        let write = Write::json(Method::PUT, state_url(self.session, &path), answer);
        self.write(agent, write).await.map(drop)
    }

    async fn fork(&self, agent: &str, checkpoint: &str, fact: Fact) -> Result<(), Refusal> {
        let [to, at] = [self.draft.as_str(), checkpoint].map(quoted);
        let body = format!("{{\"to\":{to},\"at\":{at}}}");
        let address = format!("{}/fork", session_url(self.session));
        self.write(agent, Write::json(Method::POST, address, body)).await?;
        let labels = Write::json(Method::PUT, session_url(self.draft), DRAFT.to_owned());
        self.write(agent, labels).await?;
        let address = format!("{}/transactions", session_url(self.draft));
        let write = Write::json(Method::POST, address, item::facts(&[fact])?);
        self.write(agent, write).await.map(drop)
    }

    /// Appends one item; returns its seq.
    async fn append(&self, agent: &str, address: String, item: String) -> Result<Seq, Refusal> {
        self.made(agent, Write::json(Method::POST, address, item)).await
    }

    /// Writes an entry, and returns its seq.
    async fn made(&self, agent: &str, write: Write) -> Result<Seq, Refusal> {
        let received = self.write(agent, write).await?;
        let written: Written = received.read()?;
        Ok(Seq(written.entries.first().map_or(0, |entry| entry.seq)))
    }

    /// Writes as an agent, through a restart of the server.
    async fn write(&self, agent: &str, write: Write) -> Result<Received, Refusal> {
        let (agent, key) = (agent_name(agent)?, Key::new());
        self.through(async || self.server.write_by(write.clone(), &key, Some(&agent)).await).await
    }

    /// Repeats an exchange while the server is away.
    async fn through(
        &self,
        exchange: impl AsyncFn() -> Result<Received, Refusal>,
    ) -> Result<Received, Refusal> {
        let end = Instant::now() + AWAY_MAX;
        loop {
            match exchange().await {
                Err(refusal) if refusal.is_passing() && Instant::now() < end => {
                    sleep(RETRY_PAUSE).await;
                }
                done => return done,
            }
        }
    }

    /// Returns the seq of a request of the story.
    fn seq(&self, key: &str) -> Seq {
        self.requests.get(key).copied().unwrap_or(Seq(0))
    }
}

fn agent_name(agent: &str) -> Result<AgentName, Refusal> {
    agent.parse().map_err(|_| Refusal::Address { path: agent.to_owned() })
}
