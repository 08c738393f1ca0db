//! The processes of the examples: an agent server, a device client, a tool server.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use device_agent::board::Board;
use device_agent::command::Dispatcher;
use device_agent::device::Device;
use device_agent::mcp::ToolServer;
use device_agent::model::{Endpoint, Model, Scripted};
use device_agent::registry::{Agent, KINDS};
use device_agent::tools::{self, Sandbox};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
device-agent agent NAME --kind KIND (--script FILE | --model URL --model-name NAME) [--device NAME | --root DIR]
                        [--skill NAME] [--ttl SECONDS]
device-agent device NAME --root DIR [--tools NAME,…] [--programs NAME,…] [--ttl SECONDS]
device-agent tools --root DIR [--programs NAME,…]

An agent works on the requests {\"agent\": NAME}, or {\"skill\": NAME}, a device on {\"device\": NAME}.
BLACKBOARD_URL, BLACKBOARD_SESSION and BLACKBOARD_TOKEN say where the board is.";

type Failure = Box<dyn Error + Send + Sync>;

/// Flags by name, each with a value.
struct Flags(BTreeMap<String, String>);

impl Flags {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut flags = BTreeMap::new();
        while let Some(name) = arguments.next() {
            let name = name.strip_prefix("--").ok_or(USAGE)?.to_owned();
            flags.insert(name, arguments.next().ok_or(USAGE)?);
        }
        Ok(Self(flags))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn list(&self, name: &str) -> Vec<String> {
        let names = self.get(name).unwrap_or_default().split(',').filter(|part| !part.is_empty());
        names.map(str::to_owned).collect()
    }

    fn ttl(&self) -> Result<Duration, Failure> {
        Ok(Duration::from_secs_f64(self.get("ttl").unwrap_or("30").parse()?))
    }

    /// The tools of a directory, those of the list.
    fn device(&self) -> Result<Device, Failure> {
        let root = self.get("root").ok_or(USAGE)?.to_owned();
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        let programs = self.list("programs").join(",");
        let arguments = ["tools", "--root", &root, "--programs", &programs].map(str::to_owned);
        let tools = ToolServer::start(&own, &arguments)?;
        Ok(Device { tools, allowed: self.list("tools").into_iter().collect() })
    }

    fn model(&self) -> Result<Arc<dyn Model>, Failure> {
        if let Some(script) = self.get("script") {
            return Ok(Arc::new(serde_json::from_str::<Scripted>(&std::fs::read_to_string(
                script,
            )?)?));
        }
        let url = self.get("model").ok_or(USAGE)?.parse()?;
        let key = std::env::var("OPENAI_API_KEY").ok();
        Ok(Arc::new(Endpoint::new(url, self.get("model-name").unwrap_or("default"), key)))
    }
}

fn board(agent: &str) -> Result<Board, Failure> {
    let variable =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let url = variable("BLACKBOARD_URL", "http://127.0.0.1:8733").parse()?;
    let token = std::env::var("BLACKBOARD_TOKEN").ok();
    Ok(Board::new(url, token, &variable("BLACKBOARD_SESSION", "demo"), agent)?)
}

async fn agent(name: &str, flags: &Flags, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let kind = flags.get("kind").ok_or(USAGE)?;
    let made = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, make) =
        made.ok_or_else(|| format!("'{kind}' is none of {:?}", KINDS.map(|(name, _)| name)))?;
    let dispatcher = match flags.get("root") {
        Some(_) => Dispatcher::InProcess(flags.device()?),
        None => Dispatcher::ThroughBoard(flags.get("device").unwrap_or(name).to_owned()),
    };
    let wanted =
        flags.get("skill").map_or_else(|| json!({"agent": name}), |skill| json!({"skill": skill}));
    let agent = Agent::register(board(name)?, (kind, make()?), flags.model()?, dispatcher).await?;
    Ok(agent.serve(&wanted, flags.ttl()?, stop).await?)
}

async fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    let role = arguments.next().ok_or(USAGE)?;
    if role == "tools" {
        let flags = Flags::read(arguments)?;
        let root = PathBuf::from(flags.get("root").ok_or(USAGE)?);
        let sandbox = Sandbox { root, programs: flags.list("programs") };
        return Ok(tokio::task::spawn_blocking(move || tools::serve(&sandbox)).await??);
    }
    let name = arguments.next().ok_or(USAGE)?;
    let flags = Flags::read(arguments)?;
    match role.as_str() {
        "agent" => agent(&name, &flags, stop).await,
        "device" => Ok(flags.device()?.serve(&board(&name)?, flags.ttl()?, stop).await?),
        _ => Err(USAGE.into()),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
