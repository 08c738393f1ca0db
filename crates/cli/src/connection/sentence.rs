//! Sentences about a server that is not reached, and texts of others within a sentence.

use blackboard_client::ConnectError;
use blackboard_error_chain::Chain;
use blackboard_printable::{cut, line};

/// The maximum length of a text of the server within a sentence, in bytes.
const FOREIGN_BYTES_MAX: usize = 1 << 10;

/// Says why no connection was made, and what to do.
pub(crate) fn unconnected(url: &str, why: &ConnectError) -> String {
    match why {
        ConnectError::Refused => format!(
            "{url}: the connection was refused; is the server running, and is --url (BLACKBOARD_URL) its address?"
        ),
        ConnectError::Unreachable(why) => {
            let why = foreign(&Chain(&**why).to_string());
            format!("{url}: the host cannot be reached ({why}); check --url (BLACKBOARD_URL)")
        }
        ConnectError::Timeout(time) => {
            let seconds = time.as_secs();
            format!(
                "{url}: no connection within {seconds} s; check --url (BLACKBOARD_URL) and the network"
            )
        }
        ConnectError::Tls(why) => {
            let why = foreign(&Chain(&**why).to_string());
            format!(
                "{url}: TLS failed ({why}); if a private authority signed the server's certificate, give its root \
                 certificate with --ca (BLACKBOARD_CA)"
            )
        }
        ConnectError::Name => format!("{url}: the host name is not valid for TLS; check --url"),
    }
}

/// Returns the last of an error's sources: those above only say that there is one.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Returns a text of others as a short line.
pub(crate) fn foreign(text: &str) -> String {
    line(&cut(text, FOREIGN_BYTES_MAX)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_is_one_short_line() {
        let shown = foreign(&format!("a\n\u{1b}[2J{}", "x".repeat(5_000)));
        assert!(shown.starts_with("a\\u000a\\u001b[2Jxxx"), "{shown}");
        assert!(shown.len() < 1_200 && shown.ends_with('…'), "{shown}");
    }
}
