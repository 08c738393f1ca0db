//! `blackboard pause` and `blackboard resume`: the value `agents/NAME/paused` of the state, which agents watch.

use clap::Args;
use hyper::Method;

use crate::Failure;
use crate::note;
use crate::remote::access::Access;
use crate::remote::body::Written;
use crate::remote::query::Query;
use crate::remote::refusal::Refusal;
use crate::remote::repeat::Repeat;
use crate::remote::server::Write;
use blackboard_address::state_url;
use blackboard_board::{AgentName, InvalidPath, SessionName, StatePath, Ttl};

/// Ask an agent to pause before its next step
///
/// Sets agents/NAME/paused in the session's state to true. A cooperating agent checks this value between two steps,
/// and waits until it is absent. An agent that does not check it is not stopped.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
\x20 blackboard pause demo AppAgent --for 10m")]
pub struct Pause {
    /// Session of the agent
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Agent to pause
    #[arg(value_name = "AGENT")]
    paused: AgentName,

    /// Resume the agent after this time, such as 10m
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<Ttl>,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

/// Resume a paused agent
///
/// Deletes agents/NAME/paused from the session's state. No effect on an agent that is not paused.
#[derive(Args, Debug)]
pub struct Resume {
    /// Session of the agent
    #[arg(value_name = "SESSION")]
    session: SessionName,

    /// Agent to resume
    #[arg(value_name = "AGENT")]
    paused: AgentName,

    #[command(flatten)]
    repeat: Repeat,

    #[command(flatten)]
    access: Access,
}

impl Pause {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let address = address(&self.session, &self.paused).map_err(Failure::usage)?;
        let address = Query::of(address).with("ttl", self.time).address();
        self.access
            .write(self.repeat, async |_| Ok(Write::json(Method::PUT, address, "true".to_owned())))
    }
}

impl Resume {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let address = address(&self.session, &self.paused).map_err(Failure::usage)?;
        self.access.run(async |server, screen| {
            match server.write(Write::delete(address), &self.repeat.key()).await {
                Err(Refusal::Refused { name, .. }) if name == "path-not-found" => {
                    note(format_args!("{} is not paused", self.paused));
                    Ok(())
                }
                received => screen.show(&received?, |written: Written| written.sentence("")),
            }
        })
    }
}

fn address(session: &SessionName, agent: &AgentName) -> Result<String, InvalidPath> {
    let path = StatePath::from_segments(["agents", agent.as_str(), "paused"])?;
    Ok(state_url(session, &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_agent_has_its_value_in_the_state() {
        let of = |agent: &str| address(&"s".parse().unwrap(), &agent.parse().unwrap()).unwrap();
        assert_eq!(of("AppAgent"), "/v1/sessions/s/state/agents/AppAgent/paused");
        assert_eq!(of("a~b é"), "/v1/sessions/s/state/agents/a~0b%20%C3%A9/paused");
    }
}
