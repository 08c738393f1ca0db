//! The configuration, parsed from flags and environment.

use std::{net::SocketAddr, num::NonZeroU64, path::PathBuf};

use clap::{ArgAction, Args, ValueEnum, builder::BoolishValueParser};

use crate::board::{ByteSize, SessionName};
use crate::http::{AllowedHosts, CorsOrigins, PublicUrl};

/// Where the server listens unless told otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:8733";

/// The options of `blackboard serve`.
#[derive(Args, Clone, Debug)]
pub struct Config {
    /// Address and port to listen on; port 0 takes any free one
    #[arg(long, env = "BLACKBOARD_LISTEN", value_name = "ADDR:PORT", default_value = LISTEN_DEFAULT)]
    pub listen: SocketAddr,

    /// Directory that holds the store; it is made if absent
    #[arg(long, env = "BLACKBOARD_DATA", value_name = "DIR", default_value = "./data")]
    pub data: PathBuf,

    /// Host names, separated by commas, that clients may use; IP addresses and localhost always work
    #[arg(
        long,
        env = "BLACKBOARD_ALLOWED_HOSTS",
        value_name = "NAME,…",
        default_value = "",
        hide_default_value = true
    )]
    pub allowed_hosts: AllowedHosts,

    /// Where this server is reached from outside, by http or https and perhaps with a path: addresses of images for a model's provider begin so, are signed, and open for one day to two
    #[arg(long, env = "BLACKBOARD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<PublicUrl>,

    /// Allow --listen beyond loopback, although whoever reaches the port can then read and write everything
    #[arg(long, env = "BLACKBOARD_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// Ask every request for a token; a data directory that never had one gets its first, in the file admin-token
    #[arg(long, env = "BLACKBOARD_REQUIRE_TOKEN", value_parser = BoolishValueParser::new())]
    pub require_token: bool,

    /// File that holds a token, such as a docker secret: it may do everything, and every request needs a token
    #[arg(long, env = "BLACKBOARD_ADMIN_TOKEN_FILE", value_name = "PATH")]
    pub admin_token_file: Option<PathBuf>,

    /// Requests a second that one token may send, and as many at once; 0 for any number
    #[arg(long, env = "BLACKBOARD_TOKEN_RATE", value_name = "N", default_value_t = 100)]
    pub token_rate: u32,

    /// Event streams that one token may have open at a time
    #[arg(long, env = "BLACKBOARD_TOKEN_STREAMS_MAX", value_name = "N", default_value_t = 1_000)]
    pub token_streams_max: u32,

    /// When a write is acknowledged: with full, once it is on disk; normal is faster, but an OS crash or power cut may lose the last acknowledged writes
    #[arg(long, env = "BLACKBOARD_SYNC", value_enum, default_value_t = SyncPolicy::Full)]
    pub sync: SyncPolicy,

    /// Make a session at its first write; with false, a write to an unknown session is answered 404
    #[arg(long, env = "BLACKBOARD_AUTO_CREATE", value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub auto_create: bool,

    /// NDJSON file of question-and-answer pairs that every new session starts with
    #[arg(long, env = "BLACKBOARD_QA_FILE", value_name = "PATH")]
    pub qa_file: Option<PathBuf>,

    /// Session that gathers every question which a person answers; new sessions start with its last ones, after those of the --qa-file. Answers so pass from session to session, whichever tokens reach them
    #[arg(long, env = "BLACKBOARD_QA_SESSION", value_name = "NAME")]
    pub qa_session: Option<SessionName>,

    /// Take only the last K lines of the --qa-file, and the last K questions of the --qa-session; all of them if absent
    #[arg(long, env = "BLACKBOARD_QA_LAST", value_name = "K")]
    pub qa_last: Option<NonZeroU64>,

    /// Most that one session's board may take, in bytes or with KiB, MiB, GiB or TiB
    #[arg(long, env = "BLACKBOARD_SESSION_BYTES_MAX", value_name = "SIZE", default_value = "1GiB")]
    pub session_bytes_max: ByteSize,

    /// Most that one session's images may take, in bytes or with KiB, MiB, GiB or TiB
    #[arg(
        long,
        env = "BLACKBOARD_SESSION_BLOB_BYTES_MAX",
        value_name = "SIZE",
        default_value = "2GiB"
    )]
    pub session_blob_bytes_max: ByteSize,

    /// About how much memory the sessions may take, in bytes or with KiB, MiB, GiB or TiB; beyond, those used longest ago are read from the disk again when they are asked for
    #[arg(long, env = "BLACKBOARD_MEMORY_BUDGET", value_name = "SIZE", default_value = "1GiB")]
    pub memory_budget: ByteSize,

    /// Most client connections at once; further ones wait until one is closed
    #[arg(long, env = "BLACKBOARD_CONNECTIONS_MAX", value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub connections_max: u32,

    /// Another address and port that serves only /metrics, /healthz and /readyz, to whoever reaches it: nothing of any session can be read there, so it may be beyond loopback
    #[arg(long, env = "BLACKBOARD_METRICS_LISTEN", value_name = "ADDR:PORT")]
    pub metrics_listen: Option<SocketAddr>,
    /// Sites as a browser names them, with scheme and host and perhaps a port, separated by commas, whose pages may use this server; without any, none but its own
    #[arg(
        long,
        env = "BLACKBOARD_CORS_ORIGINS",
        value_name = "ORIGIN,…",
        default_value = "",
        hide_default_value = true
    )]
    pub cors_origins: CorsOrigins,

    /// Most sessions; a write that would make one more is refused until another is deleted
    #[arg(long, env = "BLACKBOARD_SESSIONS_MAX", value_name = "N", default_value_t = 100_000)]
    pub sessions_max: u64,

    /// Most items in the logs and memories of one session together
    #[arg(
        long,
        env = "BLACKBOARD_SESSION_ITEMS_MAX",
        value_name = "N",
        default_value_t = 1_000_000
    )]
    pub session_items_max: u64,

    /// Most open streams of events; further ones are refused until one ends
    #[arg(long, env = "BLACKBOARD_STREAMS_MAX", value_name = "N", default_value_t = 5_000)]
    pub streams_max: u32,

    /// The collector that gets a span for each request.
    #[cfg(feature = "otlp")]
    #[arg(
        long,
        env = "BLACKBOARD_OTLP_ENDPOINT",
        value_name = "URL",
        help = "Base address of an OpenTelemetry collector that gets a span for each request by OTLP over plain http, such as http://127.0.0.1:4318; OTEL_EXPORTER_OTLP_HEADERS has what else it wants"
    )]
    pub otlp_endpoint: Option<String>,

    /// What to log: error, warn, info, debug or trace, also by target as in warn,blackboard=debug
    #[arg(long, env = "BLACKBOARD_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncPolicy {
    /// Once it is on disk
    Full,
    /// Once the operating system has it
    Normal,
}
