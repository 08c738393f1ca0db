//! The data directory of a command, opened here or reached through its running server. Requests and answers are
//! the same either way.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tokio::runtime::{Builder, Runtime};

use crate::auth::{TokenLimits, Tokens};
use crate::board::Policy;
use crate::clock::Clock;
use crate::config::StoreUrlParser;
use crate::control;
use crate::control::{AskError, Asking, Request, converse};
use crate::service::{LoadError, Options, Service};
use crate::store::{PostgresUrl, SqliteStore, Store, StoreError};

#[derive(Args, Clone, Debug)]
pub(super) struct Directory {
    /// Directory that holds the store; a server that runs on this directory does the work
    #[arg(long, env = "BLACKBOARD_DATA", value_name = "DIR", default_value = "./data")]
    pub(super) data: PathBuf,

    /// Address of the PostgreSQL service that holds the store, instead of a data directory; servers may be running on
    /// it
    #[arg(long, env = "BLACKBOARD_STORE", value_name = "URL", value_parser = StoreUrlParser, hide_env_values = true)]
    pub(super) store: Option<PostgresUrl>,
}

/// A data directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// The command works on files.
    #[error(transparent)]
    NotEmbedded(StoreError),
    #[error("cannot open {url}")]
    Service { url: String, source: StoreError },
    #[error("{} is not a data directory: it has no blackboard.db", .0.display())]
    Absent(PathBuf),
    #[error(
        "{} is not a data directory: it has no blackboard.db; check --data, or create one with --create",
        .0.display()
    )]
    NotCreated(PathBuf),
    #[error("cannot read the data directory {}", data.display())]
    Unreadable { data: PathBuf, source: io::Error },
    #[error(
        "{} is in use, but its server does not answer on the control socket; it may be starting or stopping; see its log",
        data.display()
    )]
    Unreachable { data: PathBuf, source: io::Error },
    #[error("cannot open the data directory {}", data.display())]
    Store { data: PathBuf, source: StoreError },
    #[error("cannot load the sessions; run 'blackboard check' for details")]
    Load(#[from] LoadError),
    #[error("cannot start")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// The party that answers.
pub(super) enum Answering {
    /// The running server of the directory.
    Server(PathBuf),
    /// This process, which holds the directory's lock.
    Here(Box<Here>),
}

/// The service of a server, without listeners.
pub(super) struct Here {
    runtime: Runtime,
    service: Service,
    tokens: Tokens,
}

impl Directory {
    /// Returns the directory if it holds a store. Refuses a store in a service.
    pub(super) fn present(&self) -> Result<&Path, Unanswered> {
        if self.store.is_some() {
            return Err(Unanswered::NotEmbedded(StoreError::NotEmbedded));
        }
        let data = || self.data.clone();
        match SqliteStore::is_in(&self.data) {
            Ok(true) => Ok(&self.data),
            Ok(false) => Err(Unanswered::Absent(data())),
            Err(source) => Err(Unanswered::Unreadable { data: data(), source }),
        }
    }

    /// Refuses a directory without a store, unless the command may create one. A service has one, or gets one.
    pub(super) fn present_or(&self, creates: bool) -> Result<(), Unanswered> {
        if self.store.is_some() {
            return Ok(());
        }
        match self.present() {
            Err(Unanswered::Absent(_)) if creates => Ok(()),
            Err(Unanswered::Absent(data)) => Err(Unanswered::NotCreated(data)),
            present => present.map(drop),
        }
    }

    /// Opens the store unless a server has it.
    pub(super) fn open(&self) -> Result<Option<SqliteStore>, Unanswered> {
        self.unless_in_use(SqliteStore::open_unserved(&self.data))
    }

    /// Opens the store for reading in place, without changing it.
    pub(super) fn look(&self) -> Result<Option<SqliteStore>, Unanswered> {
        self.unless_in_use(SqliteStore::look(&self.data))
    }

    fn unless_in_use(
        &self,
        opened: Result<SqliteStore, StoreError>,
    ) -> Result<Option<SqliteStore>, Unanswered> {
        match opened {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::InUse { .. }) => Ok(None),
            Err(source) => Err(Unanswered::Store { data: self.data.clone(), source }),
        }
    }

    /// Opens the sessions, here or through the running server.
    pub(super) fn answering(&self) -> Result<Answering, Unanswered> {
        if let Some(url) = &self.store {
            return self.answer_from(url, Options::default());
        }
        self.answer_by(self.open()?, Options::default())
    }

    /// As [`answering`](Self::answering), read-only: this process does not change the store.
    pub(super) fn telling(&self) -> Result<Answering, Unanswered> {
        let options = Options { reads_only: true, ..Options::default() };
        if let Some(url) = &self.store {
            return self.answer_from(url, options);
        }
        self.answer_by(self.look()?, options)
    }

    /// Opens the sessions of a service, beside the servers that use it.
    fn answer_from(&self, url: &PostgresUrl, options: Options) -> Result<Answering, Unanswered> {
        let failed = |source| Unanswered::Service { url: url.to_string(), source };
        let (store, clock) = url.open().map_err(failed)?;
        Here::open(store, clock, options, failed)
    }

    fn answer_by(
        &self,
        store: Option<SqliteStore>,
        options: Options,
    ) -> Result<Answering, Unanswered> {
        let Some(store) = store else {
            return Ok(Answering::Server(self.data.clone()));
        };
        let failed = |source| Unanswered::Store { data: self.data.clone(), source };
        Here::open(Arc::new(store), Clock::system(), options, failed)
    }

    /// Connects to the server that has the directory.
    pub(super) fn ask_server(&self, request: &Request) -> Result<Asking, Unanswered> {
        ask_server(&self.data, request)
    }
}

impl Answering {
    /// Sends a request.
    pub(super) fn ask(&self, request: &Request) -> Result<Asking, Unanswered> {
        match self {
            Self::Server(data) => ask_server(data, request),
            Self::Here(here) => here.ask(request),
        }
    }
}

/// Commands on a directory have no limits: those protect a server from its clients.
pub(super) fn owners_policy() -> Policy {
    Policy {
        auto_create: true,
        sessions_max: usize::MAX,
        session_items_max: u64::MAX,
        session_bytes_max: u64::MAX,
        session_blob_bytes_max: u64::MAX,
        qa_pairs: Vec::new(),
    }
}

fn ask_server(data: &Path, request: &Request) -> Result<Asking, Unanswered> {
    let unreachable = |source| Unanswered::Unreachable { data: data.to_owned(), source };
    Ok(Asking::ask(control::connect(data).map_err(unreachable)?, request)?)
}

impl Here {
    fn open(
        store: Arc<dyn Store>,
        clock: Clock,
        options: Options,
        failed: impl FnOnce(StoreError) -> Unanswered,
    ) -> Result<Answering, Unanswered> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let limits = TokenLimits { rate: None, streams_max: 0 };
        let tokens = Tokens::open(Arc::clone(&store), clock.clone(), limits).map_err(failed)?;
        let service = Service::start_with(store, owners_policy(), clock, options)?;
        Ok(Answering::Here(Box::new(Self { runtime, service, tokens })))
    }

    fn ask(&self, request: &Request) -> Result<Asking, Unanswered> {
        let (asking, answering) = UnixStream::pair()?;
        answering.set_nonblocking(true)?;
        let (service, tokens) = (self.service.clone(), self.tokens.clone());
        self.runtime.spawn(async move {
            match tokio::net::UnixStream::from_std(answering) {
                Ok(stream) => converse(stream, &service, &tokens).await,
                Err(error) => tracing::error!(%error, "cannot set up a socket pair"),
            }
        });
        Ok(Asking::ask(asking, request)?)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // The store is closed as a server closes it.
        self.service.stop();
    }
}
