//! Client of the blackboard: HTTP requests about one session, in the name of one agent.
//!
//! Every layer above reaches other processes through it alone.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde_json::{Value, json};

/// The longest wait in one request; the server allows 60 s.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub type Outcome<T> = Result<T, Error>;

/// The future of a function that is kept as a value.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Outcome<T>> + Send + 'a>>;

/// Why a step cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the board refuses: {status} {code}: {detail}")]
    Refused { status: u16, code: String, detail: String },
    #[error("no answer over HTTP")]
    Http(#[from] reqwest::Error),
    #[error("the model gave no decision: {reason}")]
    NoDecision { reason: String },
    #[error("strategy '{strategy}' did not provide '{field}'")]
    NotProvided { strategy: &'static str, field: &'static str },
}

impl Error {
    /// Returns the board's code for a refusal.
    pub fn code(&self) -> &str {
        if let Self::Refused { code, .. } = self { code } else { "" }
    }

    /// Returns true if the request is another agent's by now, or was withdrawn.
    pub fn is_lost_claim(&self) -> bool {
        ["stale-fence", "already-claimed", "entry-not-found"].contains(&self.code())
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub etag: String,
    pub body: Value,
}

/// One session as one agent sees it.
#[derive(Clone, Debug)]
pub struct Board {
    http: Client,
    server: Url,
    token: Option<String>,
    pub session: String,
    pub agent: String,
    /// How long a claim lasts if it is not renewed.
    pub ttl: Duration,
    /// The request and the fence under which everything is written.
    pub claim: Option<(u64, u64)>,
}

impl Board {
    /// Opens a session of a server; nothing is sent yet.
    pub fn new(server: Url, token: Option<String>, session: &str, agent: &str) -> Outcome<Self> {
        let http = Client::builder().no_proxy().build()?;
        let (session, agent, ttl) = (session.to_owned(), agent.to_owned(), WAIT_MAX);
        Ok(Self { http, server, token, session, agent, ttl, claim: None })
    }

    /// Returns another session of the same server, without a claim.
    pub fn of(&self, session: &str) -> Self {
        Self { session: session.to_owned(), claim: None, ..self.clone() }
    }

    /// Returns the same session, with every write under a claim: once the claim is lost they are refused.
    pub fn under(&self, request: u64, fence: u64) -> Self {
        Self { claim: Some((request, fence)), ..self.clone() }
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["v1", "sessions", &self.session]);
            segments.extend(path.split('/').filter(|segment| !segment.is_empty()));
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url).header("X-Agent-ID", &self.agent);
        self.token.iter().fold(request, RequestBuilder::bearer_auth)
    }

    async fn send(request: RequestBuilder, expected: &[u16]) -> Outcome<Answer> {
        let answer = request.send().await?;
        let (status, tag) = (answer.status(), answer.headers().get("etag").cloned());
        let etag = tag.iter().filter_map(|tag| tag.to_str().ok()).collect();
        let body: Value = serde_json::from_slice(&answer.bytes().await?).unwrap_or_default();
        if status.is_success() || expected.contains(&status.as_u16()) {
            return Ok(Answer { status, etag, body });
        }
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        Err(Error::Refused { status: status.as_u16(), code: text("code"), detail: text("detail") })
    }

    /// Reads a resource; that it is not there is an answer.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Outcome<Answer> {
        Self::send(self.request(Method::GET, path, query), &[404]).await
    }

    /// Writes JSON, or nothing if it is null; under the claim if there is one.
    pub async fn write(&self, method: Method, path: &str, body: &Value) -> Outcome<Answer> {
        let claim = self.claim.map(|(request, fence)| (request.to_string(), fence.to_string()));
        let query =
            claim.iter().flat_map(|(request, fence)| [("claim", &**request), ("fence", fence)]);
        let request = self.request(method, path, &query.collect::<Vec<_>>());
        Self::send(if body.is_null() { request } else { request.json(body) }, &[]).await
    }

    /// Commits all operations, or does nothing if a condition does not hold; returns the answer.
    pub async fn commit(&self, conditions: Value, operations: Value) -> Outcome<Value> {
        let body = json!({"if": conditions, "then": operations});
        Ok(self.write(Method::POST, "transactions", &body).await?.body)
    }

    /// Does an operation `{"append": …}` once, however often it is called; returns the entry's seq.
    ///
    /// An agent that takes a request over finds what the last one asked, instead of asking again.
    pub async fn append_once(&self, key: &str, mut append: Value) -> Outcome<u64> {
        append["item"]["call_id"] = json!(key);
        let (marker, log) = (format!("once/{key}"), append["append"].clone());
        let conditions = json!([{"path": marker, "absent": true}]);
        let made = self.commit(conditions, json!([append, {"put": marker, "value": true}])).await?;
        if let Some(seq) = made.pointer("/results/0/seq").and_then(Value::as_u64) {
            return Ok(seq);
        }
        let query = [("contains", key), ("limit", "1000")];
        let found = self.get(log.as_str().unwrap_or_default(), &query).await?.body;
        let mut entries = found["entries"].as_array().into_iter().flatten();
        let own = entries.find(|entry| entry["item"]["call_id"] == json!(key));
        Ok(own.and_then(|entry| entry["seq"].as_u64()).unwrap_or_default())
    }

    /// Reads a resource at each change, until something is found in it or the time is over.
    pub async fn until<T>(
        &self,
        path: &str,
        within: Duration,
        found: impl Fn(&Answer) -> Option<T> + Send,
    ) -> Outcome<Option<T>> {
        let deadline = Instant::now() + within;
        loop {
            let session = self.get("", &[]).await?;
            let answer = self.get(path, &[]).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let value = found(&answer);
            if value.is_some() || left.is_zero() {
                return Ok(value);
            }
            // A missing value can only come with a change of the session.
            let is_there = answer.status.is_success() && !answer.etag.is_empty();
            let (watched, tag) = if is_there { (path, answer.etag) } else { ("", session.etag) };
            let wait = format!("{}ms", left.min(WAIT_MAX).as_millis());
            let request = self.request(Method::GET, watched, &[("wait", &wait)]);
            Self::send(request.header("If-None-Match", tag), &[304, 404]).await?;
        }
    }

    /// Claims requests whose items have these members, and works on each, until `stop`.
    pub async fn serve(
        &self,
        wanted: &Value,
        stop: impl Future<Output = ()>,
        work: impl AsyncFn(u64, u64, &Value) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut stop = pin!(stop);
        let body = json!({"ttl": format!("{}ms", self.ttl.as_millis()), "match": wanted});
        loop {
            let next = self.request(Method::POST, "requests/claim", &[("wait", "30s")]);
            let entry = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                claimed = Self::send(next.json(&body), &[]) => claimed?.body,
            };
            let place = (entry["seq"].as_u64(), entry["claim"]["fence"].as_u64());
            let (Some(seq), Some(fence)) = place else { continue };
            let ended = tokio::select! {
                ended = work(seq, fence, &entry["item"]) => ended,
                lost = self.renew(seq) => lost,
            };
            match ended {
                // It was withdrawn, or another agent has it and goes on from the last step that was kept.
                Err(error) if error.is_lost_claim() => eprintln!("{}: {error}", self.agent),
                ended => ended?,
            }
        }
    }

    /// Renews a claim until it is lost.
    async fn renew(&self, request: u64) -> Outcome<()> {
        let path = format!("requests/{request}/claim");
        let body = json!({"ttl": format!("{}ms", self.ttl.as_millis())});
        loop {
            tokio::time::sleep(self.ttl / 3).await;
            let renewed = self.write(Method::PUT, &path, &body).await;
            if renewed.as_ref().is_err_and(Error::is_lost_claim) {
                return renewed.map(drop);
            }
        }
    }
}
