//! Cost of an append to a board of a million items, beside one to an empty board.
//!
//! One service takes durable writes to both boards in turn, from writers that wait for each answer. Rounds are short,
//! so that the empty board stays nearly empty.

use std::sync::Arc;
use std::time::Instant;

use blackboard::auth::Caller;
use blackboard::board::{Item, SessionName, Write};
use blackboard::clock::Clock;
use blackboard::service::{Options, Service};
use blackboard::store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::Failure;
use crate::figures::{figure, median};
use crate::fill::{Plan, append, fill, open, policy, session, wait_settled};
use crate::texts::{Kind, Texts};

const ITEMS: usize = 1_000_000;
const WRITERS: usize = 64;
const ROUNDS: usize = 15;

/// More than the large board takes, which is hot all the time.
const MEMORY_BUDGET: u64 = 8 << 30;

/// How many items one writer appends in a round.
const EACH: usize = 150;

pub fn run() -> Result<(), Failure> {
    let dir = TempDir::new()?;
    let plan = Plan { sessions: 1, commits: ITEMS, at_once: 1, kind: Kind::Step };
    fill(&open(dir.path())?, plan)?;
    let store = Arc::new(SqliteStore::open(dir.path(), SqliteOptions::default())?);
    let options = Options { memory_budget: MEMORY_BUDGET, ..Options::default() };
    let service =
        Service::start_with(Arc::<SqliteStore>::clone(&store), policy(), Clock::system(), options)?;
    wait_settled(&store)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let large: SessionName = session(0).parse()?;
    runtime.block_on(round(&service, &large))?;
    let (mut rates, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for number in 0..ROUNDS {
        let empty: SessionName = format!("empty-{number}").parse()?;
        // Who is first changes, as what is written is settled between them.
        let (of_empty, of_large) = if number % 2 == 0 {
            let of_empty = runtime.block_on(round(&service, &empty))?;
            (of_empty, runtime.block_on(round(&service, &large))?)
        } else {
            let of_large = runtime.block_on(round(&service, &large))?;
            (runtime.block_on(round(&service, &empty))?, of_large)
        };
        ratios.push(of_large / of_empty);
        let [empties, larges] = &mut rates;
        empties.push(of_empty);
        larges.push(of_large);
    }
    let [empties, larges] = rates.map(median);
    println!(
        "appends/s by {WRITERS} writers: {empties:.0} to an empty board, {larges:.0} to one of {ITEMS}"
    );
    figure("append_large_ratio", median(ratios), "x");
    service.stop();
    Ok(())
}

/// How many items a second they append.
async fn round(service: &Service, session: &SessionName) -> Result<f64, Failure> {
    let mut texts = Texts::of(Kind::Step);
    let mut writers = JoinSet::new();
    let mut items = Vec::new();
    for _ in 0..WRITERS {
        let each: Result<Vec<Item>, _> =
            (0..EACH).map(|_| Item::from_json(&texts.next())).collect();
        items.push(each?);
    }
    let begin = Instant::now();
    for items in items {
        let session = service.session(&Caller::owner(), session).await?;
        writers.spawn(async move {
            for item in items {
                let Write { terms, command, .. } = append(session.name(), item);
                session.write(terms, command, Vec::new(), None).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok((WRITERS * EACH) as f64 / begin.elapsed().as_secs_f64())
}
