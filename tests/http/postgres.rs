//! Queries on a server's PostgreSQL schema, for tests.

use std::thread;

use tokio::runtime::Builder;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls};

use crate::harness::Schema;

async fn connected(schema: &Schema) -> Client {
    let (client, connection) =
        tokio_postgres::connect(schema.url(), NoTls).await.expect("PostgreSQL");
    tokio::spawn(connection);
    client
}

/// Runs a query of one value, on a thread that may block.
pub(crate) fn value<T: FromSqlOwned + Send + 'static>(schema: &Schema, sql: &'static str) -> T {
    let schema = schema.clone();
    let asked = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            connected(&schema).await.query_one(sql, &[]).await.expect("a row").get(0)
        })
    });
    asked.join().expect("an answer")
}

/// Runs statements.
pub(crate) fn run(schema: &Schema, sql: &'static str) {
    let schema = schema.clone();
    let asked = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime
            .block_on(async { connected(&schema).await.batch_execute(sql).await.expect("done") });
    });
    asked.join().expect("an end");
}
