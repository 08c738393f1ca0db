//! Reasons why a PostgreSQL service is not used.

use blackboard_roots::RootsError;

/// The reason why a PostgreSQL service is not used.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The address cannot be parsed.
    #[error("{0}")]
    Address(String),
    /// The root certificates cannot be loaded.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The server does not sync its log.
    #[error(
        "the PostgreSQL server has fsync = off, and would lose acknowledged commits: set it to on"
    )]
    FsyncOff,
    /// A commit is acknowledged before it is on disk.
    #[error("the PostgreSQL server does not accept synchronous_commit = on")]
    NotSynchronous,
    /// The server takes no writes.
    #[error(
        "the PostgreSQL server is a standby: give the primary's address, or all hosts and \
         target_session_attrs=read-write"
    )]
    Standby,
    /// Its transactions are read-only by a setting.
    #[error(
        "the database accepts no writes, since default_transaction_read_only is on for the database or the role: \
         reset it (ALTER ROLE … RESET, ALTER DATABASE … RESET), or give the address of another server"
    )]
    ReadOnly,
    /// A pooler gives a connection's transactions to sessions of PostgreSQL in turn.
    #[error(
        "the address leads to a pooler in transaction mode, which gives the transactions of one connection to several \
         sessions of PostgreSQL: settings, advisory locks and LISTEN would not hold. Set the pooler's mode to session \
         (pgbouncer: pool_mode = session), or give the address of PostgreSQL itself"
    )]
    TransactionPooler,
    /// A pooler gives a connection's statements to sessions of PostgreSQL in turn.
    #[error(
        "the address leads to a pooler in statement mode, which does not support transactions. Set the pooler's mode \
         to session (pgbouncer: pool_mode = session), or give the address of PostgreSQL itself"
    )]
    #[cfg(feature = "postgres")]
    StatementPooler(#[source] tokio_postgres::Error),
    /// The database cannot store all texts.
    #[error("the database has the encoding {found}: create one with ENCODING 'UTF8'")]
    Encoding {
        /// Its encoding.
        found: String,
    },
    /// A build before the first release wrote the schema, or another program has a table of that name.
    #[error(
        "the table meta of the database is of a version before the first release, which no later version reads, or \
         of another program; nothing was changed: use another schema or database"
    )]
    BeforeRelease,
    /// Another version of this program wrote the schema.
    #[error(
        "the schema of the database has format {found}; this blackboard uses {known} and can serve beside {known} and \
         the next one: upgrade blackboard step by step"
    )]
    Schema {
        /// The format in the database.
        found: i32,
        /// The format of this program.
        known: i32,
    },
    /// The row with the schema's version, epoch and key is missing or damaged.
    #[error(
        "the schema of the database has no valid row in its table meta: restore the database from a dump"
    )]
    NoMeta,
    /// The user may not create the schema.
    #[error("the schema {schema} does not exist and cannot be created")]
    NoSchema {
        /// The schema's name.
        schema: String,
    },
    /// The engine's own threads cannot be started.
    #[error("the database client cannot be started")]
    Runtime(#[from] std::io::Error),
    /// A statement failed.
    #[error("PostgreSQL failed")]
    #[cfg(feature = "postgres")]
    Server(#[source] tokio_postgres::Error),
}
