//! Prompts within a token budget: omitted parts, their order, and the headers that report them.

use base64::Engine as _;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use blackboard::board::Tokenizer;
use blackboard::prompt::Estimator;

use crate::harness::{Board, Server};
use crate::images::{data_url, png};

const ALL: &str = "include=questions,requests,trajectories,screenshots,state,memory:A,memory:B";

const FORMATS: [&str; 5] = ["parts", "responses", "anthropic", "gemini", "markdown"];

/// What a random board has: for each thing its log, how long its text is, and whether it is a question with an
/// answer or a screenshot with an image.
type Things = Vec<(u8, u16, bool)>;

fn things() -> impl Strategy<Value = Things> {
    prop::collection::vec((0_u8..6, 0_u16..400, any::<bool>()), 0..40)
}

/// Fills a board; each item has a number of its own.
async fn fill(board: &Board, things: &Things) {
    board.put("state", r#"{"id":"i1000.","é":"ü"}"#).await.succeeded();
    for (id, (log, length, with)) in things.iter().enumerate() {
        let text = format!("i{id}. {}", "x\"é\n".repeat(usize::from(length / 4)));
        let (log, item) = match log {
            0 if *with => ("questions", json!({"question":text,"answer":"yes"})),
            0 => ("questions", json!({"question":text})),
            1 => ("requests", json!({"request":text})),
            2 => ("trajectories", json!({"step":id,"x":text})),
            3 => ("agents/A/memory", json!({"step":id,"x":text})),
            4 => ("agents/B/memory", json!({"step":id,"x":text})),
            _ if *with => {
                let (width, height) = (1 + 3 * u32::from(*length), 1 + u32::from(*length));
                let image = data_url("image/png", &png(width, height, 1));
                ("screenshots", json!({"metadata":text,"image_str":image}))
            }
            _ => ("screenshots", json!({"metadata":text,"image_str":""})),
        };
        board.post(log, &item.to_string()).await.is(201);
    }
}

/// What a prompt shows.
#[derive(Debug, Default)]
struct Seen {
    /// The numbers of its items, as they come.
    ids: Vec<usize>,
    images: usize,
    /// By our own reckoning.
    tokens: u64,
    truncated: u64,
    told: u64,
}

async fn seen(board: &Board, format: &str, query: &str) -> Result<Seen, u64> {
    let answer = board.get(&format!("prompt?{ALL}&format={format}{query}")).await;
    if answer.status() == 422 {
        let problem = answer.problem(422, "budget-too-small");
        let detail = problem["detail"].as_str().unwrap().to_owned();
        let needed = detail.split(' ').find_map(|word| word.parse().ok());
        return Err(needed.expect("how much it needs"));
    }
    let body = answer.is(200).text().to_owned();
    let (mut text, mut images, mut image_tokens) = (String::new(), 0, 0);
    if format == "markdown" {
        text.push_str(&body);
        images = body.matches("![").count();
    } else {
        for part in answer.json().as_array().unwrap() {
            match part["text"].as_str() {
                Some(part) => text.push_str(part),
                None => {
                    images += 1;
                    match image_cost(format, part) {
                        Some(tokens) => image_tokens += tokens,
                        // What stands in the place of an image is a text.
                        None => text.push_str(&part["image_url"]["url"].to_string()),
                    }
                }
            }
        }
    }
    let number = |name: &str| answer.header(name).parse().unwrap();
    let has_budget = query.contains("max_tokens");
    Ok(Seen {
        ids: ids(&text),
        images,
        tokens: Estimator::of(tokenizer(format)).text(&text).tokens() + image_tokens,
        truncated: if has_budget { number("blackboard-truncated") } else { 0 },
        told: if has_budget { number("blackboard-tokens") } else { 0 },
    })
}

const fn tokenizer(format: &str) -> Tokenizer {
    match format.as_bytes() {
        b"parts" | b"responses" => Tokenizer::OpenAi,
        b"anthropic" => Tokenizer::Anthropic,
        b"gemini" => Tokenizer::Gemini,
        _ => Tokenizer::Other,
    }
}

/// The estimate is a sum of items, and signs between two items count as those of both.
const TOKENS_BETWEEN_ITEMS: u64 = 4;

/// More than any prompt here.
const ROOMY: &str = "&max_tokens=100000000";

fn ids(text: &str) -> Vec<usize> {
    let after = text.split('i').skip(1);
    let number = |rest: &str| rest.split_once(['.', '\\'])?.0.parse().ok();
    after.filter_map(number).collect()
}

/// What an image takes by its provider's rule; the size is in the header of the PNG.
fn image_cost(format: &str, part: &Value) -> Option<u64> {
    let url = |value: &Value| {
        let url = value.as_str().unwrap();
        url.split_once("base64,").map(|(_, data)| data.to_owned())
    };
    let data = match format {
        "parts" => url(&part["image_url"]["url"]),
        "responses" => url(&part["image_url"]),
        "anthropic" => part["source"]["data"].as_str().map(str::to_owned),
        _ => part["inlineData"]["data"].as_str().map(str::to_owned),
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(data?).unwrap();
    let side = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
    let (width, height) = (side(16), side(20));
    // None is so large that a provider would make it smaller.
    assert!(width <= 2048 && height <= 768);
    Some(match format {
        "anthropic" => width.div_ceil(28) * height.div_ceil(28),
        "gemini" => 1120,
        _ => 85 + 170 * width.div_ceil(512) * height.div_ceil(512),
    })
}

fn is_part_of(some: &[usize], all: &[usize]) -> bool {
    let mut all = all.iter();
    some.iter().all(|id| all.any(|other| other == id))
}

/// Whatever the board and the budgets: never above the budget, always in order, never less of a larger one.
async fn check(board: &Board, things: &Things, mut budgets: Vec<u64>, format: &str) {
    let whole = seen(board, format, ROOMY).await.unwrap();
    budgets.extend([whole.told, whole.told.saturating_sub(1).max(1)]);
    budgets.sort_unstable();
    let stays = |id: &usize| *id == 1000 || matches!(things.get(*id), Some((0, _, false)));
    let mut before: Option<Seen> = None;
    for budget in budgets {
        let shown = match seen(board, format, &format!("&max_tokens={budget}")).await {
            Ok(shown) => shown,
            Err(needed) => {
                assert!(needed > budget, "{needed} {budget}");
                assert!(before.is_none(), "a smaller budget was enough: {before:?}");
                continue;
            }
        };
        assert!(shown.told <= budget, "{shown:?} {budget}");
        let near = TOKENS_BETWEEN_ITEMS * (shown.ids.len() as u64 + 10);
        assert!(shown.told.abs_diff(shown.tokens) <= near, "{format} {budget} {shown:?}");
        assert!(is_part_of(&shown.ids, &whole.ids), "{shown:?} {whole:?}");
        assert!(whole.ids.iter().filter(|id| stays(id)).all(|id| shown.ids.contains(id)));
        let gone = whole.ids.len() - shown.ids.len();
        assert!(shown.truncated >= gone as u64, "{shown:?}");
        if let Some(before) = &before {
            assert!(is_part_of(&before.ids, &shown.ids), "{before:?} {shown:?}");
            assert!(before.images <= shown.images && before.truncated >= shown.truncated);
        }
        if budget >= whole.told {
            assert_eq!((shown.truncated, &shown.ids, shown.images), (0, &whole.ids, whole.images));
        }
        before = Some(shown);
    }
}

#[test]
fn a_budget_is_kept_in_order_and_a_larger_one_never_shows_less() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(async { Server::start() });
    let mut runner =
        TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let cases = (things(), prop::collection::vec(1_u64..6000, 1..8));
    let number = std::sync::atomic::AtomicUsize::new(0);
    let ran = runner.run(&cases, |(things, budgets)| {
        let at = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let board = server.board(&format!("s{at}"));
        runtime.block_on(async {
            fill(&board, &things).await;
            for format in FORMATS {
                check(&board, &things, budgets.clone(), format).await;
            }
        });
        Ok(())
    });
    ran.unwrap();
}

#[tokio::test]
async fn what_goes_goes_in_order_and_a_line_says_how_much() {
    let server = Server::start();
    let board = server.board("s");
    board
        .post("questions", r#"[{"question":"i0.","answer":"a"},{"question":"i1."}]"#)
        .await
        .is(201);
    board.post("requests", r#"["i2.","i3."]"#).await.is(201);
    board.post("trajectories", r#"["i4.","i5."]"#).await.is(201);
    board.post("agents/A/memory", r#"["i6."]"#).await.is(201);
    board.post("agents/B/memory", r#"["i7."]"#).await.is(201);
    board.post("agents/A/memory", r#"["i8."]"#).await.is(201);
    let image = data_url("image/png", &png(9, 9, 1));
    let shot = |id: &str| json!({"metadata":id,"image_str":image}).to_string();
    board.post("screenshots", &shot("i9.")).await.is(201);
    board.post("screenshots", &shot("i10.")).await.is(201);
    let whole = seen(&board, "parts", ROOMY).await.unwrap();
    let (mut left, mut gone) = (whole.ids.clone(), Vec::new());
    let (mut images, mut without) = (Vec::new(), 0);
    for budget in (1..=whole.told).rev() {
        let Ok(shown) = seen(&board, "parts", &format!("&max_tokens={budget}")).await else {
            break;
        };
        gone.extend(left.iter().filter(|id| !shown.ids.contains(id)).copied());
        left = shown.ids;
        images.push(shown.images);
        if shown.images == 0 && without == 0 {
            without = budget;
        }
    }
    assert_eq!(gone, [4, 5, 6, 7, 8, 2, 3, 0, 9, 10]);
    assert_eq!(left, [1]);
    images.dedup();
    assert_eq!(images, [2, 1, 0]);
    let some = board.get(&format!("prompt?{ALL}&max_tokens={without}")).await;
    let parts = some.is(200).json();
    let line = parts.as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned();
    let begin = format!("[Left out to stay within {without} tokens: 2 images");
    assert!(line.starts_with(&begin), "{line}");
    let roomy = board.get("prompt?max_tokens=100000").await;
    assert_eq!(roomy.header("blackboard-truncated"), "0");
    assert_eq!(roomy.body(), board.get("prompt").await.body());
    for wrong in ["0", "-1", "x", "1.5", ""] {
        board.get(&format!("prompt?max_tokens={wrong}")).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn open_questions_and_the_state_never_go() {
    let server = Server::start();
    let board = server.board("s");
    let text = "long ".repeat(100);
    board.post("questions", &json!({"question":text}).to_string()).await.is(201);
    let problem = board.get("prompt?max_tokens=100").await.problem(422, "budget-too-small");
    assert!(problem["detail"].as_str().unwrap().contains("the budget is 100"), "{problem}");
    board.put("questions/1/answer", r#"{"answer":"yes"}"#).await.is(200);
    assert_eq!(
        board.get("prompt?max_tokens=100").await.is(200).header("blackboard-truncated"),
        "1"
    );
    board.put("state/x", &json!(text).to_string()).await.succeeded();
    board.get("prompt?max_tokens=100").await.is(200);
    board.get("prompt?max_tokens=100&include=state").await.problem(422, "budget-too-small");
}

/// A text of some length in another script, and in steps as agents write them.
const STEPS: [&str; 3] = [
    "代理打开了表格，按日期对各列进行排序，并删除了重复的行。然后它把结果以新的名称保存到共享文件夹中。",
    "The agent opened the table, sorted its columns by date and deleted the rows that were there twice.",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 3.14159265358979 [12, 40, 92, 64]",
];

#[tokio::test]
async fn a_budget_counts_by_the_tokenizer_of_the_model() {
    let server = Server::start();
    let board = server.board("s");
    for step in STEPS {
        board.post("trajectories", &json!({ "text": step }).to_string()).await.is(201);
    }
    let tokens = async |query: &str| -> u64 {
        let answer = board.get(&format!("prompt?{query}{ROOMY}")).await;
        answer.is(200).header("blackboard-tokens").parse().unwrap()
    };
    for format in FORMATS {
        let default = tokens(&format!("format={format}")).await;
        let mut most = 0;
        for family in ["openai", "anthropic", "gemini", "other"] {
            let own = tokens(&format!("format={format}&tokenizer={family}")).await;
            most = most.max(own);
            assert!(own > 150, "{format} {family}: {own}");
            let is_default = family
                == match format {
                    "parts" | "responses" => "openai",
                    "markdown" => "other",
                    format => format,
                };
            assert!(!is_default || own == default, "{format} {family}: {own} and {default}");
        }
        let other = tokens(&format!("format={format}&tokenizer=other")).await;
        // A high estimate of one family may be a little above that of the highest count.
        assert!(other * 10 >= most * 9, "{format}: {other} and {most}");
    }
    let escaped = tokens("format=parts").await;
    assert!(escaped > tokens("format=parts&ascii=false").await * 3 / 2, "{escaped}");
    board.get("prompt?tokenizer=gpt").await.problem(400, "invalid-parameter");
}
