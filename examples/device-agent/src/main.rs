//! Commands of the examples: an agent, and the client of a device.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use device_agent::board::Board;
use device_agent::command::Dispatcher;
use device_agent::device::Device;
use device_agent::mcp::ToolServer;
use device_agent::model::{Endpoint, Model, Scripted};
use device_agent::registry::{self, Agent};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
device-agent device NAME --server 'PROGRAM ARGUMENT …' --tools NAME,… [--ttl SECONDS]
device-agent agent NAME --kind KIND (--script FILE | --model URL --model-name NAME) [--skill NAME]
                        [--device NAME | --server 'PROGRAM …' --tools NAME,…] [--ttl SECONDS]

KIND is HostAgent, AppAgent, LinuxAgent or CriticAgent.
A device works on the requests {\"device\": NAME}, an agent on {\"agent\": NAME} or {\"skill\": NAME}.
BLACKBOARD_URL, BLACKBOARD_SESSION and BLACKBOARD_TOKEN say where the board is.";

type Failure = Box<dyn Error + Send + Sync>;

/// Flags by name, each with a value.
struct Flags(BTreeMap<String, String>);

impl Flags {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&format!("--{name}")).map(String::as_str)
    }

    fn board(&self, agent: &str) -> Result<Board, Failure> {
        let variable = |name: &str| std::env::var(format!("BLACKBOARD_{name}")).ok();
        let url = variable("URL").unwrap_or_else(|| "http://127.0.0.1:8733".to_owned());
        let session = variable("SESSION").unwrap_or_else(|| "demo".to_owned());
        let mut board = Board::new(url.parse()?, variable("TOKEN"), &session, agent)?;
        board.ttl = Duration::from_secs(self.get("ttl").unwrap_or("30").parse()?);
        Ok(board)
    }

    fn device(&self) -> Result<Device, Failure> {
        let tools = ToolServer::start(self.get("server").ok_or(USAGE)?)?;
        let allowed = self.get("tools").unwrap_or_default().split(',').map(str::to_owned);
        Ok(Device { tools, allowed: allowed.collect() })
    }

    fn model(&self) -> Result<Arc<dyn Model>, Failure> {
        if let Some(script) = self.get("script") {
            let script: Scripted = serde_json::from_str(&std::fs::read_to_string(script)?)?;
            return Ok(Arc::new(script));
        }
        let url = self.get("model").ok_or(USAGE)?.parse()?;
        let model = self.get("model-name").unwrap_or("default").to_owned();
        Ok(Arc::new(Endpoint { url, model, key: std::env::var("OPENAI_API_KEY").ok() }))
    }
}

async fn agent(name: &str, flags: &Flags, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let kind = flags.get("kind").ok_or(USAGE)?;
    let made = registry::kind(kind).ok_or_else(|| format!("'{kind}' is no kind of agent"))?;
    let dispatcher = match flags.get("server") {
        Some(_) => Dispatcher::InProcess(flags.device()?),
        None => Dispatcher::ThroughBoard(flags.get("device").unwrap_or(name).to_owned()),
    };
    let skill = flags.get("skill").map(|skill| json!({"skill": skill}));
    let wanted = skill.unwrap_or_else(|| json!({"agent": name}));
    let agent =
        Agent::register(flags.board(name)?, (kind, made?), flags.model()?, dispatcher).await?;
    let work = async |seq: u64, fence: u64, item: &Value| agent.work(seq, fence, item).await;
    Ok(agent.board.serve(&wanted, stop, work).await?)
}

async fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    // After what it is at; an interrupt ends it at once, and its claim by the ttl.
    let stop = async move { terminated.recv().await.unwrap_or_default() };
    let [role, name, flags @ ..] = arguments else { return Err(USAGE.into()) };
    let pair = |pair: &[String]| Some((pair.first()?.clone(), pair.get(1)?.clone()));
    let flags = Flags(flags.chunks(2).map(pair).collect::<Option<_>>().ok_or(USAGE)?);
    match role.as_str() {
        "agent" => agent(name, &flags, stop).await,
        "device" => Ok(flags.device()?.serve(&flags.board(name)?, stop).await?),
        _ => Err(USAGE.into()),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let failure = run(&arguments).await.err();
    failure.iter().for_each(|failure| eprintln!("{failure}"));
    if failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
