//! Ends of an attempt: done with the output, failed with the end of what it printed, released.

use std::time::Duration;

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Worker;
use crate::remote::place::quoted;
use crate::remote::refusal::Refusal;
use crate::remote::server::{JSON, Received, Write};
use blackboard_address::session_url;
use blackboard_board::PAST_REASON_BYTES_MAX;

/// The largest result that stands in a request, in bytes.
const RESULT_BYTES_MAX: usize = 1 << 20;

/// The pause after the first failed attempt, and the longest one.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";

/// An attempt that is to be ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) seq: u64,
    pub(super) fence: u64,
    /// Attempts before this one that failed.
    pub(super) failures: u32,
}

#[derive(Deserialize)]
struct Uploaded {
    sha256: String,
}

impl Attempt {
    /// Finishes the request with a command's output.
    pub(super) async fn finish(self, worker: &Worker<'_>, output: Vec<u8>) -> Result<(), Refusal> {
        let (result, media_type) = match std::str::from_utf8(&output) {
            Ok(text) if is_json(text) => (Some(text.trim().to_owned()), JSON),
            Ok(text) => (Some(as_text(text)), TEXT),
            Err(_) => (None, BYTES),
        };
        let Some(result) = result.filter(|result| result.len() <= RESULT_BYTES_MAX) else {
            let result = upload(worker, output, media_type).await?;
            return self.done(worker, &result).await.map(drop);
        };
        match self.done(worker, &result).await {
            // JSON that a board does not take, such as 1e400, is a text.
            Err(Refusal::Refused { status, .. })
                if status == StatusCode::UNPROCESSABLE_ENTITY && media_type == JSON =>
            {
                let text = String::from_utf8_lossy(&output);
                self.done(worker, &as_text(&text)).await.map(drop)
            }
            done => done.map(drop),
        }
    }

    async fn done(self, worker: &Worker<'_>, result: &str) -> Result<Received, Refusal> {
        let body = format!("{{\"fence\":{},\"result\":{result}}}", self.fence);
        let address = format!("{}/done", worker.request(self.seq));
        worker.write(Write::json(Method::PUT, address, body)).await
    }

    /// Fails the attempt. Returns the pause until the next one.
    pub(super) async fn fail(
        self,
        worker: &Worker<'_>,
        why: &str,
        tail: &[u8],
    ) -> Result<Duration, Refusal> {
        let pause = pause(self.failures);
        let (fence, reason) = (self.fence, reason(why, &String::from_utf8_lossy(tail)));
        let retry_in = pause.as_secs();
        let body =
            format!("{{\"fence\":{fence},\"reason\":{reason},\"retry_in\":\"{retry_in}s\"}}");
        let address = format!("{}/failed", worker.request(self.seq));
        worker.write(Write::json(Method::PUT, address, body)).await.map(|_| pause)
    }

    /// Gives the request back.
    pub(super) async fn release(self, worker: &Worker<'_>) -> Result<(), Refusal> {
        let Self { seq, fence, .. } = self;
        let address = format!("{}/claim?claim={seq}&fence={fence}", worker.request(seq));
        worker.write(Write::delete(address)).await.map(drop)
    }
}

/// Uploads an output, and returns the result that names it.
async fn upload(
    worker: &Worker<'_>,
    output: Vec<u8>,
    media_type: &'static str,
) -> Result<String, Refusal> {
    let address = format!("{}/blobs", session_url(&worker.session));
    let write =
        Write { method: Method::POST, address, media_type: media_type.into(), body: output.into() };
    let Uploaded { sha256 } = worker.write(write).await?.read()?;
    Ok(format!("{{\"output\":{{\"$blob\":{}}}}}", quoted(&sha256)))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns an output as a JSON string, without its last line break.
fn as_text(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    quoted(text.strip_suffix('\r').unwrap_or(text))
}

/// Returns the pause after so many failed attempts and one more.
fn pause(failures: u32) -> Duration {
    let doubled = RETRY.0.checked_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    doubled.unwrap_or(RETRY.1).min(RETRY.1)
}

/// Returns why an attempt failed, with as much of the end of what the command printed as past attempts keep.
fn reason(why: &str, tail: &str) -> String {
    let mut tail = tail.trim();
    loop {
        let whole = if tail.is_empty() { why.to_owned() } else { format!("{why}: {tail}") };
        let reason = quoted(&whole);
        let excess = reason.len().saturating_sub(PAST_REASON_BYTES_MAX);
        if excess == 0 || tail.is_empty() {
            return reason;
        }
        // A character may take six bytes in JSON.
        let cut = excess.div_ceil(6).min(tail.len());
        let cut = (cut..=tail.len()).find(|at| tail.is_char_boundary(*at));
        tail = tail.get(cut.unwrap_or(tail.len())..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_five_minutes() {
        let seconds: Vec<u64> = (0..11).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pause(u32::MAX), RETRY.1);
    }

    #[test]
    fn a_reason_keeps_the_end_that_fits() {
        assert_eq!(reason("exit code 1", " \n"), r#""exit code 1""#);
        assert_eq!(reason("exit code 1", "no\ndisk\n"), r#""exit code 1: no\ndisk""#);
        for filling in ["x", "é", "\u{1}", "\""] {
            let reason = reason("exit code 1", &format!("{}the end", filling.repeat(3_000)));
            assert!(reason.len() <= PAST_REASON_BYTES_MAX && reason.len() > 2_030, "{reason}");
            assert!(reason.ends_with("the end\"") && reason.starts_with("\"exit code 1: "));
        }
    }

    #[test]
    fn an_output_is_json_or_a_text_without_its_last_line_break() {
        assert!(is_json("42\n") && is_json(" {\"a\": 1.0}\n") && !is_json("") && !is_json("a 1"));
        assert_eq!(as_text("two\nlines\n"), r#""two\nlines""#);
        assert_eq!(as_text("none"), r#""none""#);
        assert_eq!(as_text("\r\n"), r#""""#);
    }
}
