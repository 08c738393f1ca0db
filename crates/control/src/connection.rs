//! One control connection: reads a request, runs it, answers.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::time::timeout;

use super::answer::{Answer, Done, Refusal, SILENCE_MAX};
use super::request::Request;
use super::{archives, backups, tokens};
use blackboard_auth::{NewToken, Tokens};
use blackboard_service::Service;

/// The maximum length of a request.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Runs the one request of a connection.
pub async fn converse(stream: UnixStream, service: &Service, tokens: &Tokens) {
    let (input, output) = stream.into_split();
    let (mut input, mut answer) = (BufReader::new(input), Answer::to(output));
    match read(&mut input).await {
        Ok(request) => {
            let done = carry_out(&request, service, tokens, &mut input, &mut answer).await;
            answer.end(Some(&request), done).await;
        }
        Err(refusal) => answer.end(None, Err(refusal)).await,
    }
}

async fn read(input: &mut BufReader<OwnedReadHalf>) -> Result<Request, Refusal> {
    let mut line = Vec::new();
    let mut bounded = input.take(REQUEST_BYTES_MAX);
    let read = timeout(SILENCE_MAX, bounded.read_until(b'\n', &mut line)).await;
    let is_whole = read.is_ok_and(|read| read.is_ok()) && line.ends_with(b"\n");
    if !is_whole {
        return Err(Refusal::NoRequest { max: REQUEST_BYTES_MAX });
    }
    serde_json::from_slice(&line).map_err(Refusal::Unknown)
}

async fn carry_out(
    request: &Request,
    service: &Service,
    of_store: &Tokens,
    input: &mut BufReader<OwnedReadHalf>,
    answer: &mut Answer,
) -> Done {
    match request {
        Request::Sessions {} => archives::sessions(service, answer).await,
        Request::Export { session } => archives::export(service, session, answer).await,
        Request::Import { session } => archives::import(service, session, input).await,
        Request::CreateToken { name, scopes, sessions, agent, expires, anyway } => {
            let asked = NewToken {
                name: name.clone(),
                scopes: scopes.iter().copied().collect(),
                sessions: sessions.clone(),
                agent: agent.clone(),
                expires_at: expires.map(|expires| of_store.now().after(expires)),
                anyway: *anyway,
            };
            tokens::create(of_store, asked, answer).await
        }
        Request::ExportTokens {} => tokens::export(of_store, answer).await,
        Request::ImportToken(token) => tokens::import(of_store, token.clone()).await,
        Request::Tokens {} => tokens::list(of_store, answer).await,
        Request::DisableTokens {} => tokens::disable(of_store).await,
        Request::RevokeToken { token } => tokens::revoke(of_store, token.clone(), answer).await,
        Request::Backup { to, progress } => {
            unless_gone(input, backups::backup(service, to, *progress, answer)).await
        }
        Request::Check { scratch, progress } => {
            let check = backups::check(service, scratch.as_deref(), *progress, answer);
            unless_gone(input, check).await
        }
    }
}

/// Cancels long work once the client disconnects; clients send nothing more by then.
async fn unless_gone(
    input: &mut BufReader<OwnedReadHalf>,
    work: impl Future<Output = Done>,
) -> Done {
    tokio::select! {
        done = work => done,
        _ = input.read_u8() => Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()),
    }
}
