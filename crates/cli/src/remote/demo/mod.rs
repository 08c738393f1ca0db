//! `blackboard demo`: plays a recorded example run against a server, at the pace asked for.

mod player;

use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use tokio::time::sleep;
use uuid::Uuid;

use self::player::{Player, RECORDING, through};
use super::access;
use super::end::End;
use super::refusal::Refusal;
use super::server::Server;
use crate::connection::{Connection, foreign};
use crate::{Failure, note, put};
use blackboard_address::{segment, session_url};
use blackboard_board::SessionName;
use blackboard_printable::line;

/// The longest run, in seconds.
const SECONDS_MAX: u32 = 3_600;

/// Fill a new session with an example run, and watch it grow
///
/// Three agents make a chart of the quarter's sales and put it into a report: requests that wait for others, one that
/// fails and is tried again, steps with screenshots, questions, a state, checkpoints, and a fork, SESSION-draft. One
/// question is answered by the command unless somebody is faster; one stays open. The agents have their own names, so
/// --agent has no effect, and a token that is bound to an agent is rejected.
#[derive(Args, Debug)]
pub struct Demo {
    /// New session [default: demo- and eight random characters]
    #[arg(value_name = "SESSION")]
    session: Option<SessionName>,

    /// Duration of the run in seconds; 0 runs without pauses
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(SECONDS_MAX))
    )]
    pace: u32,

    #[command(flatten)]
    connection: Connection,
}

/// The doors that the server names.
#[derive(Deserialize)]
struct Doors {
    ui: Option<String>,
}

/// The session at the end of the run.
#[derive(Deserialize)]
struct About {
    revision: u64,
    counts: Counts,
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct Counts {
    questions: u64,
    requests: u64,
    trajectories: u64,
    screenshots: u64,
}

impl Demo {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let session = match self.session {
            Some(session) => session,
            None => generated().parse().map_err(Failure::usage)?,
        };
        let draft = format!("{session}-draft").parse().map_err(Failure::usage)?;
        let time = Duration::from_secs(self.pace.into());
        access::run(&self.connection, async |server| {
            let mut end = End::new()?;
            let played = end.or(play(server, &session, &draft, time)).await;
            played.unwrap_or_else(|| {
                note(format_args!("interrupted; session {session} stays as it is"));
                Ok(())
            })
        })
    }
}

/// Returns a name for a session.
fn generated() -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("demo-{}", random.get(..8).unwrap_or(&random))
}

async fn play(
    server: &Server,
    session: &SessionName,
    draft: &SessionName,
    time: Duration,
) -> Result<(), Refusal> {
    vacant(server, session).await?;
    vacant(server, draft).await?;
    let mut player = Player::new(server, session, draft, time);
    // The first call makes the session.
    let (first, rest) = RECORDING.split_once('\n').unwrap_or_default();
    player.play(first).await?;
    print(&places(server, session).await)?;
    for call in rest.lines() {
        sleep(player.pause).await;
        player.play(call).await?;
    }
    let about = through(async || server.get(&session_url(session)).await).await?;
    print(&summary(session, draft, &about.read()?))
}

/// Refuses a session that exists.
async fn vacant(server: &Server, session: &SessionName) -> Result<(), Refusal> {
    match server.get(&session_url(session)).await {
        Err(Refusal::Refused { name, .. }) if name == "session-not-found" => Ok(()),
        found => found.and(Err(Refusal::Occupied { session: session.clone() })),
    }
}

/// Returns where to watch the session.
async fn places(server: &Server, session: &SessionName) -> String {
    let doors = server.get("/").await.and_then(|received| received.read::<Doors>());
    let ui = doors.ok().and_then(|doors| doors.ui).filter(|ui| ui.starts_with('/'));
    let name = segment(session.as_str());
    let page = ui.map(|ui| format!("watch  {}#/sessions/{name}/timeline\n", server.url(&ui)));
    let tail = format!("watch  blackboard tail {}\n", line(session.as_str()));
    page.unwrap_or_default() + &tail
}

fn summary(session: &SessionName, draft: &SessionName, about: &About) -> String {
    let Counts { questions, requests, trajectories, screenshots } = about.counts;
    let cost = about.cost.unwrap_or_default();
    let session = foreign(session.as_str());
    let draft = foreign(draft.as_str());
    format!(
        "done   revision {}: {requests} requests, {trajectories} steps, {screenshots} screenshots, {questions} questions; cost {cost:.3}\n\
         fork   {draft}, from checkpoint charted\n\
         next   blackboard answer {session}/questions/{questions} 'Send it'\n",
        about.revision
    )
}

/// Prints lines for people.
fn print(lines: &str) -> Result<(), Refusal> {
    put(lines).map_err(Refusal::Output)
}
