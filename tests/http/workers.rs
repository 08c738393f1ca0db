//! Workers, sixteen on one log of requests: each request is done once, in the order of the plans.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::metrics::sample;

const REQUESTS: u64 = 2_000;
const KINDS: [&str; 3] = ["linux", "windows", "mac"];

/// The requests that always fail.
const HOPELESS: [u64; 3] = [7, 701, 1_401];

/// Every fourth request waits for the one before it.
fn blocker(seq: u64) -> Option<u64> {
    (seq.is_multiple_of(4) && !HOPELESS.contains(&(seq - 1))).then(|| seq - 1)
}

async fn posted(board: &Board) {
    let operations: Vec<Value> = (1..=REQUESTS)
        .map(|seq| {
            let kind = KINDS[usize::try_from(seq % 3).unwrap()];
            let item = json!({"kind":kind,"hopeless":HOPELESS.contains(&seq)});
            let after: Vec<u64> = blocker(seq).into_iter().collect();
            json!({"append":"requests","item":item,"after":after,"attempts":20})
        })
        .collect();
    for part in operations.chunks(1_000) {
        board.post("transactions", &json!({"then":part}).to_string()).await.is(200);
    }
}

const TTL: Duration = Duration::from_secs(2);

/// Longer than a claim lasts.
const NAP: Duration = Duration::from_millis(2_200);

/// What a worker does with its nth claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    Steady,
    /// Dies with a claim in its hands, after so many.
    DiesAfter(u64),
    /// Takes longer than its claim lasts, each twentieth time.
    Slow,
}

/// Asks again, with the key of the first time, while a busy database takes longer to answer than the server waits for it.
async fn answered(request: RequestBuilder) -> Answer {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let key = format!("call {}", CALLS.fetch_add(1, Ordering::Relaxed));
    let request = request.header("idempotency-key", key);
    loop {
        let answer = ask(request.try_clone().unwrap()).await;
        if answer.status() != 503 {
            return answer;
        }
        answer.problem(503, "store-unavailable");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Whether each request has ended: done, with a trajectory, or failed for good.
async fn is_over(board: &Board) -> bool {
    let read = |tail: &str| answered(board.to(Method::GET, tail));
    let done = read("trajectories?latest=1").await.is(200).json()["count"].as_u64();
    if done != Some(REQUESTS - HOPELESS.len() as u64) {
        return false;
    }
    for seq in HOPELESS {
        let entry = read(&format!("requests/{seq}")).await.is(200).json();
        if !entry["failed"].is_object() {
            return false;
        }
    }
    true
}

/// Works until nothing is left. Returns the requests of which a claim may have lapsed in its hands.
async fn work(board: Board, name: String, kind: Option<&'static str>, habit: Habit) -> Vec<u64> {
    let wanted = kind.map_or(json!({}), |kind| json!({"kind":kind}));
    let body = json!({"match":wanted,"ttl":format!("{}ms", TTL.as_millis())}).to_string();
    let mut claims = 0;
    let mut late = Vec::new();
    loop {
        let asked = Instant::now();
        let claim = board.by(&name, Method::POST, "requests/claim?wait=1500ms", &body);
        let claimed = answered(claim).await;
        if claimed.status() == 204 {
            // A claim that another one died with may last longer than this wait.
            if is_over(&board).await {
                return late;
            }
            continue;
        }
        claims += 1;
        let entry = claimed.is(200).json();
        let (seq, fence) = (&entry["seq"], &entry["claim"]["fence"]);
        match habit {
            Habit::DiesAfter(count) if claims > count => {
                late.extend(seq.as_u64());
                return late;
            }
            Habit::Slow if claims % 20 == 0 => sleep(NAP).await,
            Habit::Steady | Habit::DiesAfter(_) | Habit::Slow => {}
        }
        if entry["item"]["hopeless"] == true {
            let body = json!({"fence":fence,"reason":"hopeless"}).to_string();
            let failed = board.by(&name, Method::PUT, &format!("requests/{seq}/failed"), &body);
            let failed = answered(failed).await;
            // On a busy machine any claim may lapse.
            if asked.elapsed() >= TTL {
                late.extend(seq.as_u64());
            } else {
                failed.is(200);
            }
            continue;
        }
        let done = json!({"then":[
            {"append":"trajectories","item":{"did":seq}},
            {"done":seq,"fence":fence},
        ]});
        let done = board.by(&name, Method::POST, "transactions", &done.to_string());
        let done = answered(done).await;
        assert!(done.status() == 200 || asked.elapsed() >= TTL, "{done}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_is_done_once_in_the_order_of_the_plans() {
    let server = Server::start();
    let board = server.made("s").await;
    posted(&board).await;
    let workers = (0..16_usize).map(|n| {
        let habit = match n {
            3 => Habit::DiesAfter(40),
            8 => Habit::DiesAfter(71),
            5 => Habit::Slow,
            _ => Habit::Steady,
        };
        let kind = (n >= 4).then(|| KINDS[n % 3]);
        tokio::spawn(work(board.clone(), format!("worker {n}"), kind, habit))
    });
    let mut late = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        late.extend(worker.await.unwrap());
    }
    let did = board.lines("trajectories").await;
    let did = did.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["did"].as_u64());
    let mut order: HashMap<u64, usize> = HashMap::new();
    for (place, seq) in did.enumerate() {
        let again = order.insert(seq.unwrap(), place);
        assert_eq!(again, None, "{seq:?} was done twice");
    }
    assert_eq!(order.len() as u64, REQUESTS - HOPELESS.len() as u64);
    for seq in 1..=REQUESTS {
        if let Some(before) = blocker(seq) {
            assert!(order[&before] < order[&seq], "{seq} was done before {before}");
        }
    }
    for seq in HOPELESS {
        let entry = board.get(&format!("requests/{seq}")).await.json();
        assert_eq!(entry["failures"], 20, "{entry}");
        assert!(entry["failed"].is_object(), "{entry}");
        // A lapse has no reason.
        let lapsed = late.contains(&seq) && entry["failed"]["reason"].is_null();
        assert!(lapsed || entry["failed"]["reason"] == "hopeless", "{entry}");
    }
    // Each offer is of a request that became claimable: by a post, a done blocker, a failure or a lapse.
    let offers = sample(&server, "blackboard_claim_offers_total").await;
    assert!(offers < (REQUESTS + 200) as f64, "{offers} offers");
    eprintln!("{offers} offers");
}
