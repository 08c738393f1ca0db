//! The configuration, parsed from flags and environment.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Command, ValueEnum};

use crate::board::{ByteSize, SessionName};
use crate::http::{AllowedHosts, CorsOrigins, PublicUrl, TrustedProxies};
use crate::store::PostgresUrl;

/// The address that the server listens on by default.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:8733";

/// Parses an address to listen on: `127.0.0.1:8733`, `[::1]:8733`, `localhost:8733`, `8733` (on this machine), or
/// `:8733` (on all addresses).
///
/// # Errors
///
/// The reason, if the text is none of these.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
    let address = match host {
        "" => Ipv4Addr::UNSPECIFIED,
        "localhost" => Ipv4Addr::LOCALHOST,
        _ => {
            let why = "expected ADDRESS:PORT such as 127.0.0.1:8733 or [::1]:8733, localhost:PORT, :PORT or PORT";
            return text.parse().map_err(|_| why.to_owned());
        }
    };
    let port = port.parse().map_err(|_| format!("{port:?} is not a port from 0 to 65535"))?;
    Ok(SocketAddr::from((address, port)))
}

/// Parses the address of a PostgreSQL service. The error does not quote it, since it may have a password.
#[derive(Clone, Copy, Debug)]
pub struct StoreUrlParser;

impl TypedValueParser for StoreUrlParser {
    type Value = PostgresUrl;

    fn parse_ref(
        &self,
        command: &Command,
        _arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<PostgresUrl, clap::Error> {
        let refused = |why: &dyn std::fmt::Display| {
            command.clone().error(ErrorKind::ValueValidation, format!("--store: {why}"))
        };
        let text = value.to_str().ok_or_else(|| refused(&"the address is not UTF-8"))?;
        text.parse().map_err(|why| refused(&why))
    }
}

/// The options of `blackboard serve`.
#[derive(Args, Clone, Debug)]
pub struct Config {
    /// Address and port to listen on, or a port alone on this machine; :PORT is on all addresses, port 0 any free one
    #[arg(long, env = "BLACKBOARD_LISTEN", value_name = "ADDR:PORT", default_value = LISTEN_DEFAULT,
          value_parser = listen_address)]
    pub listen: SocketAddr,

    /// Directory that holds the store; created if absent
    #[arg(long, env = "BLACKBOARD_DATA", value_name = "DIR", default_value = "./data")]
    pub data: PathBuf,

    /// The service that holds the store.
    #[arg(
        long,
        env = "BLACKBOARD_STORE",
        value_name = "URL",
        hide_env_values = true,
        value_parser = StoreUrlParser,
        help = "Address of a PostgreSQL service that holds the store instead of --data, for any number of servers: postgres://USER:PASSWORD@HOST/DATABASE, with libpq's parameters, such as sslmode=verify-full, and target_session_attrs=read-write for several hosts"
    )]
    pub store: Option<PostgresUrl>,

    /// Host names, separated by commas, by which clients may address the server; IP addresses and localhost are always allowed
    #[arg(
        long,
        env = "BLACKBOARD_ALLOWED_HOSTS",
        value_name = "NAME,…",
        default_value = "",
        hide_default_value = true
    )]
    pub allowed_hosts: AllowedHosts,

    /// Networks or addresses of proxies, separated by commas, such as 10.0.0.0/8, whose X-Forwarded-For names the
    /// client; the header is ignored from anyone else
    #[arg(
        long,
        env = "BLACKBOARD_TRUSTED_PROXIES",
        value_name = "CIDR,…",
        default_value = "",
        hide_default_value = true
    )]
    pub trusted_proxies: TrustedProxies,

    /// URL of this server as seen from outside, http or https, optionally with a path: prompts then have signed image
    /// URLs below it, valid for one to two days, which a model's provider can open
    #[arg(long, env = "BLACKBOARD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<PublicUrl>,

    /// Allow --listen beyond loopback without tokens: anyone who reaches the port can then read and write everything
    #[arg(long, env = "BLACKBOARD_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// Require a token for every request; the first start creates an admin token in the data directory's file
    /// admin-token
    #[arg(long, env = "BLACKBOARD_REQUIRE_TOKEN", value_parser = BoolishValueParser::new())]
    pub require_token: bool,

    /// File that holds an admin token, such as a docker secret; every request then needs a token
    #[arg(long, env = "BLACKBOARD_ADMIN_TOKEN_FILE", value_name = "PATH")]
    pub admin_token_file: Option<PathBuf>,

    /// Maximum requests per second of one token, and its burst size; 0 for no limit
    #[arg(long, env = "BLACKBOARD_TOKEN_RATE", value_name = "N", default_value_t = 100)]
    pub token_rate: u32,

    /// Maximum number of open event streams of one token
    #[arg(long, env = "BLACKBOARD_TOKEN_STREAMS_MAX", value_name = "N", default_value_t = 1_000)]
    pub token_streams_max: u32,

    /// When a write is acknowledged: full, once on disk; normal is faster, but an OS crash or power cut may lose the last acknowledged writes
    #[arg(long, env = "BLACKBOARD_SYNC", value_enum, default_value_t = SyncPolicy::Full)]
    pub sync: SyncPolicy,

    /// Create a session on its first write; with false, a write to an unknown session fails with 404
    #[arg(long, env = "BLACKBOARD_AUTO_CREATE", value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub auto_create: bool,

    /// JSONL file of question-and-answer pairs that every new session starts with
    #[arg(long, env = "BLACKBOARD_QA_FILE", value_name = "PATH")]
    pub qa_file: Option<PathBuf>,

    /// Session that collects every question answered by a person; new sessions start with its questions, after those of the --qa-file. Answers thus spread across sessions regardless of token rights
    #[arg(long, env = "BLACKBOARD_QA_SESSION", value_name = "NAME")]
    pub qa_session: Option<SessionName>,

    /// Use only the last K lines of the --qa-file and the last K questions of the --qa-session; all if absent
    #[arg(long, env = "BLACKBOARD_QA_LAST", value_name = "K")]
    pub qa_last: Option<NonZeroU64>,

    /// Maximum size of one session's board, in bytes or with KiB, MiB, GiB or TiB
    #[arg(long, env = "BLACKBOARD_SESSION_BYTES_MAX", value_name = "SIZE", default_value = "1GiB")]
    pub session_bytes_max: ByteSize,

    /// Maximum size of one session's images and blobs, in bytes or with KiB, MiB, GiB or TiB
    #[arg(
        long,
        env = "BLACKBOARD_SESSION_BLOB_BYTES_MAX",
        value_name = "SIZE",
        default_value = "2GiB"
    )]
    pub session_blob_bytes_max: ByteSize,

    /// Approximate memory for sessions, in bytes or with KiB, MiB, GiB or TiB; beyond it, the least recently used
    /// sessions are evicted and read from disk on demand
    #[arg(long, env = "BLACKBOARD_MEMORY_BUDGET", value_name = "SIZE", default_value = "1GiB")]
    pub memory_budget: ByteSize,

    /// Full-text search over all sessions; its index takes about half as much disk space as the texts
    #[arg(long, env = "BLACKBOARD_SEARCH", value_name = "MODE", default_value = "on")]
    pub search: Search,

    /// Maximum number of client connections; at the limit an idle connection is closed for a new one, or new ones
    /// wait
    #[arg(long, env = "BLACKBOARD_CONNECTIONS_MAX", value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub connections_max: u32,

    /// Additional address and port that serves only /metrics, /healthz and /readyz, without tokens; session data is not readable there, so it may be beyond loopback
    #[arg(long, env = "BLACKBOARD_METRICS_LISTEN", value_name = "ADDR:PORT", value_parser = listen_address)]
    pub metrics_listen: Option<SocketAddr>,
    /// Origins, separated by commas, whose pages may use this server from a browser; by default only its own
    #[arg(
        long,
        env = "BLACKBOARD_CORS_ORIGINS",
        value_name = "ORIGIN,…",
        default_value = "",
        hide_default_value = true
    )]
    pub cors_origins: CorsOrigins,

    /// Maximum number of sessions; a write that would create one more is rejected until another is deleted
    #[arg(long, env = "BLACKBOARD_SESSIONS_MAX", value_name = "N", default_value_t = 100_000)]
    pub sessions_max: u64,

    /// Maximum number of items in all logs and memories of one session
    #[arg(
        long,
        env = "BLACKBOARD_SESSION_ITEMS_MAX",
        value_name = "N",
        default_value_t = 1_000_000
    )]
    pub session_items_max: u64,

    /// Maximum number of open event streams of one client; further ones are rejected until one ends
    #[arg(long, env = "BLACKBOARD_STREAMS_MAX", value_name = "N", default_value_t = 5_000)]
    pub streams_max: u32,

    /// The collector that receives a span per request.
    #[cfg(feature = "otlp")]
    #[arg(
        long,
        env = "BLACKBOARD_OTLP_ENDPOINT",
        value_name = "URL",
        help = "Base address of an OpenTelemetry collector that receives a span per request by OTLP over plain http, \
                such as http://127.0.0.1:4318; headers are read from OTEL_EXPORTER_OTLP_HEADERS"
    )]
    pub otlp_endpoint: Option<String>,

    /// Log level: error, warn, info, debug or trace, optionally by target as in warn,blackboard=debug
    #[arg(long, env = "BLACKBOARD_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// Whether texts are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// Entries are indexed for GET /v1/search
    On,
    /// No index and no search
    Off,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncPolicy {
    /// Once the write is on disk
    Full,
    /// Once the operating system has the write
    Normal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_has_short_forms() {
        let parsed = |text| listen_address(text).map(|address| address.to_string());
        for (text, expected) in [
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]:8733", "[::1]:8733"),
            ("localhost:8733", "127.0.0.1:8733"),
            ("8733", "127.0.0.1:8733"),
            (":8733", "0.0.0.0:8733"),
            (":0", "0.0.0.0:0"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            ":",
            "localhost",
            "localhost:",
            "host:8733",
            "65536",
            "-1",
            "::1",
            "::1:x",
            "1.2.3:4",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
