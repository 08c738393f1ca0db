//! Prompts in each provider's format; `tests/providers.py` checks them with the providers' types.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::images::{BMP, JPEG, data_url, decoded, png};

const ALL: &str = "include=questions,requests,trajectories,screenshots,state,memory:HostAgent";

/// A board with something of everything.
pub(crate) async fn rich(server: &Server) -> Board {
    let board = server.board("rich (1)");
    board
        .post(
            "questions",
            r##"[{"question":"Which printer?","answer":"The one on floor 2 🖨"},{"question":"Color?","answer":null},{"text":"# not a heading"}]"##,
        )
        .await
        .is(201);
    board
        .post("requests", r#"["Print the report",{"request":"看看 <b>this</b>","n":1e5}]"#)
        .await
        .is(201);
    let steps = [
        r#"{"step":1,"action":"open","result":{"status":"ok","n":[1,2.50]}}"#,
        r#"{"step":2,"action":"print\nin two lines","status":"FAIL","step":3}"#,
    ];
    board.post("trajectories", &format!("[{}]", steps.join(","))).await.is(201);
    let screenshots = [
        json!({"metadata":{"app":"Excel 📊","quote":"\""},"image_path":"a.png","image_str":data_url("image/png", &png(2, 3, 1))}),
        json!({"metadata":"a photo","image_str":data_url("image/jpeg", &decoded(JPEG))}),
        json!({"metadata":"no image","image_str":""}),
        json!({"metadata":"a label","image_str":"http://example.org/a.png"}),
        json!({"metadata":"no true image","image_str":"data:image/png;base64,AAAA"}),
        json!({"metadata":"another kind","image_str":data_url("image/bmp", &decoded(BMP))}),
    ];
    for screenshot in screenshots {
        board.post("screenshots", &screenshot.to_string()).await.is(201);
    }
    board.put("state", r#"{"phase":"print","pages":[1,2,3],"note":"```"}"#).await.succeeded();
    let step = r#"{"step":1,"thought":"It is *offline*.","cost":0.02}"#;
    board.post("agents/HostAgent/memory", step).await.is(201);
    board
}

/// A body with a part a line.
fn by_lines(body: &str) -> String {
    body.replace("}, {\"t", "},\n{\"t")
        .replace("}, {\"i", "},\n{\"i")
        .replace("}, {\"f", "},\n{\"f")
}

#[tokio::test]
async fn one_board_in_every_format() {
    let server = Server::start();
    let board = rich(&server).await;
    for format in ["parts", "responses", "anthropic", "gemini"] {
        let answer = board.get(&format!("prompt?{ALL}&format={format}")).await;
        assert_eq!(answer.is(200).header("content-type"), "application/json");
        insta::assert_snapshot!(format!("{format}"), by_lines(answer.text()));
        let addressed =
            board.get(&format!("prompt?include=screenshots&format={format}&images=url")).await;
        insta::assert_snapshot!(format!("{format}_url"), by_lines(addressed.is(200).text()));
    }
    let answer = board.get(&format!("prompt?{ALL}&format=markdown")).await;
    assert_eq!(answer.is(200).header("content-type"), "text/markdown; charset=utf-8");
    insta::assert_snapshot!("markdown", answer.text());
}

#[tokio::test]
async fn who_accepts_markdown_gets_it() {
    let server = Server::start();
    let board = rich(&server).await;
    let asked =
        |accept: &str, tail: &str| ask(board.to(Method::GET, tail).header("Accept", accept));
    let markdown = board.get("prompt?format=markdown").await;
    let accepted = asked("text/markdown", "prompt").await;
    assert_eq!(accepted.is(200).body(), markdown.body());
    assert!(accepted.header("vary").to_lowercase().contains("accept"), "{accepted}");
    // The query goes before it, and other tags stand for other forms.
    assert_eq!(
        asked("text/markdown", "prompt?format=parts").await.body(),
        board.get("prompt").await.body()
    );
    assert_eq!(asked("*/*", "prompt").await.body(), board.get("prompt").await.body());
    assert_ne!(accepted.etag(), board.get("prompt").await.etag());
    board.get("prompt?format=html").await.problem(400, "invalid-parameter");
}

/// The kinds of the parts, and of images what they are.
fn kinds(parts: &Value) -> Vec<String> {
    let parts = parts.as_array().expect("parts").iter();
    let kind = |part: &Value| part["type"].as_str().unwrap_or("part").to_owned();
    parts.map(kind).collect()
}

#[tokio::test]
async fn older_screenshots_are_lines() {
    let server = Server::start();
    let board = rich(&server).await;
    let parts = board.get("prompt?include=screenshots&screenshots=5").await.is(200).json();
    let line = "{\"app\": \"Excel \\ud83d\\udcca\", \"quote\": \"\\\"\"} \
        [image not shown: /v1/sessions/rich%20%281%29/screenshots/1/image]";
    assert_eq!(parts[1]["text"], line);
    assert_eq!(parts[2]["text"], "\"a photo\"");
    assert_eq!(parts[3]["type"], "image_url");
    assert_eq!(parts.as_array().unwrap().len(), 2 + 2 * 5);
    let none = board.get("prompt?include=screenshots&screenshots=0").await.is(200).json();
    assert_eq!(kinds(&none), ["text"; 7]);
    assert_eq!(none[3]["text"], "\"no image\" [no image]");
    board.get("prompt?screenshots=-1").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn no_format_but_the_originals_has_an_image_without_an_image() {
    let server = Server::start();
    let board = rich(&server).await;
    // It begins as a PNG, and that is all of it.
    let begun = json!({"metadata":"begun","image_str":"data:image/png;base64,iVBORw0KGgo="});
    board.post("screenshots", &begun.to_string()).await.is(201);
    let markdown = board.get("prompt?include=screenshots&format=markdown").await;
    assert!(markdown.is(200).text().contains("- begun [image not shown](</v1/"), "{markdown}");
    for (format, image) in [("responses", "input_image"), ("anthropic", "image")] {
        let tail = format!("prompt?include=screenshots&format={format}");
        let parts = board.get(&tail).await.is(200).json();
        // The BMP is converted; what is no image has a line.
        let images = kinds(&parts).into_iter().filter(|kind| kind == image).count();
        assert_eq!(images, 3, "{parts}");
        assert!(parts.to_string().contains("\\\"no true image\\\" [image not shown: "), "{parts}");
    }
    let parts = board.get("prompt?include=screenshots&format=gemini").await.is(200).json();
    let types: Vec<_> = parts
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|part| part["inlineData"]["mimeType"].as_str())
        .collect();
    assert_eq!(types, ["image/png", "image/jpeg", "image/png"]);
}

#[tokio::test]
async fn a_prompt_shows_one_agents_steps_and_screenshots() {
    let server = Server::start();
    let board = server.board("s");
    for agent in ["A", "B"] {
        for (log, item) in [
            ("requests", json!({"by": agent})),
            ("trajectories", json!({"step": 1, "by": agent, "status": "OK"})),
            ("trajectories", json!({"step": 2.0, "by": agent, "status": "FAIL"})),
            ("screenshots", json!({"metadata": agent})),
        ] {
            let post = board.to(Method::POST, log).header("X-Agent-ID", agent);
            ask(post.header("Content-Type", "application/json").body(item.to_string()))
                .await
                .is(201);
        }
    }
    let texts = async |query: &str| {
        let parts = board.get(&format!("prompt?{query}")).await.is(200).json();
        let parts = parts.as_array().unwrap().iter();
        let text = |part: &Value| part["text"].as_str().map(str::to_owned);
        parts.filter_map(text).collect::<Vec<_>>()
    };
    let step = |step: &str, by: &str, status: &str| {
        format!("{{\"by\": \"{by}\", \"status\": \"{status}\", \"step\": {step}}}")
    };
    let heading = "[Step Trajectories Completed Previously:]\n ";
    let of_a = texts("agent=A&images=none").await;
    let requests = "[Request History:]\n [{\"by\": \"A\"}, {\"by\": \"B\"}]";
    assert_eq!(of_a[2], requests);
    assert_eq!(
        of_a[3],
        format!("{heading}[{}, {}]", step("1", "A", "OK"), step("2.0", "A", "FAIL"))
    );
    assert_eq!(of_a[4..], ["\"A\""]);
    let failed = texts("status=FAIL&include=trajectories").await;
    assert_eq!(
        failed[1],
        format!("{heading}[{}, {}]", step("2.0", "A", "FAIL"), step("2.0", "B", "FAIL"))
    );
    let last = texts("steps=2,7&latest=1&include=trajectories").await;
    assert_eq!(last[1], format!("{heading}[{}]", step("2.0", "B", "FAIL")));
    let nobody = texts("agent=C&include=trajectories").await;
    assert_eq!(nobody[1], format!("{heading}[]"));
    board.get("prompt?steps=two").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_profile_says_what_the_query_does_not() {
    let server = Server::start();
    let board = rich(&server).await;
    let agent = json!({"format":"anthropic","include":["trajectories","questions"],"keys":["step"],"latest":1,
        "headings":{"trajectories":"[Step Trajectories:]","blackboard":"[Board of \"this\" session:]"}});
    let settings = json!({"settings":{"profiles":{"agent":agent},"history_keys":["action"]}});
    board.put("", &settings.to_string()).await.is(200);
    let parts = board.get("prompt?profile=agent").await.is(200).json();
    let expected = json!([{"type":"text","text":"[Board of \"this\" session:]"},
        {"type":"text","text":"[Questions & Answers:]\n [{\"text\": \"# not a heading\"}]"},
        {"type":"text","text":"[Step Trajectories:]\n [{\"step\": 3}]"}]);
    assert_eq!(parts, expected);
    let parts = board.get("prompt?profile=agent&format=gemini&keys=status&latest=9").await.json();
    assert_eq!(parts[2], json!({"text":"[Step Trajectories:]\n [{}, {\"status\": \"FAIL\"}]"}));
    let plain = board.get("prompt?include=trajectories&latest=1").await.json();
    let heading = "[Step Trajectories Completed Previously:]\n ";
    let action = "{\"action\": \"print\\nin two lines\"}";
    assert_eq!(plain[1]["text"], format!("{heading}[{action}]"));
    // A changed profile has another tag.
    let before = board.get("prompt?profile=agent").await.etag();
    let settings = json!({"settings":{"profiles":{"agent":{"format":"responses"}}}});
    board.put("", &settings.to_string()).await.is(200);
    assert_ne!(board.get("prompt?profile=agent").await.etag(), before);
    board.get("prompt?profile=other").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn the_mark_stands_before_what_changes() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", r#"["one"]"#).await.is(201);
    let marked = async |query: &str| {
        let tail = format!("prompt?format=anthropic&cache_marks=true{query}");
        let parts = board.get(&tail).await.is(200).json();
        let parts = parts.as_array().unwrap().clone();
        let is_marked = |part: &Value| part.get("cache_control").is_some();
        let marks: Vec<_> = (0..parts.len()).filter(|at| is_marked(&parts[*at])).collect();
        assert_eq!(parts[marks[0]]["cache_control"], json!({"type":"ephemeral"}));
        assert_eq!(marks.len(), 1, "{parts:?}");
        (marks[0], parts)
    };
    assert_eq!(marked("").await.0, 2);
    assert_eq!(marked("&include=screenshots,state").await.0, 0);
    let mut before: Vec<Value> = Vec::new();
    for count in 1..=70 {
        board.post("trajectories", &json!({"step": count}).to_string()).await.is(201);
        let (at, parts) = marked("").await;
        assert_eq!(at, 2 + count / 32, "{parts:?}");
        let bare = |part: &Value| part["text"].clone();
        let stable: Vec<_> = parts[..=at].iter().map(bare).collect();
        // What was stable before is so still.
        assert!(stable.starts_with(&before), "{stable:?}");
        before = stable;
        let text: String = parts[3..].iter().filter_map(|part| part["text"].as_str()).collect();
        let whole = board.get("prompt?format=anthropic&include=trajectories").await.json();
        assert_eq!(whole[1]["text"], text);
    }
    let others = board.get("prompt?format=responses&cache_marks=true").await;
    assert!(!others.is(200).text().contains("cache_control"));
}

#[tokio::test]
async fn prompts_of_a_growing_board_share_all_that_did_not_change() {
    let server = Server::start();
    let board = rich(&server).await;
    for format in ["parts", "responses", "anthropic", "gemini", "markdown"] {
        let tail = format!("prompt?{ALL}&format={format}&screenshots=2");
        let mut before = board.get(&tail).await.is(200).text().to_owned();
        let grown = [
            ("trajectories", json!({"step":9,"grown":format})),
            ("requests", json!({"grown":format})),
            ("questions", json!({"question":"Q","answer":format})),
            ("agents/HostAgent/memory", json!({"step":9,"grown":format})),
        ];
        for (log, item) in grown {
            board.post(log, &item.to_string()).await.is(201);
            let now = board.get(&tail).await.is(200).text().to_owned();
            // They part where the list ended before: a new item, and what was behind the list, come now.
            let (shared, rest) = parted(&before, &now);
            let is_end = rest.is_empty() || rest.starts_with([']', '\n']);
            assert!(is_end, "{format} {log}: {shared:.200}\n...{rest:.80}");
            before = now;
        }
        // Of the screenshots only those before the last two stay as they were.
        let image = json!({"metadata":"new","image_str":data_url("image/png", &png(3, 3, 7))});
        board.post("screenshots", &image.to_string()).await.is(201);
        let now = board.get(&tail).await.is(200).text().to_owned();
        let (shared, _) = parted(&before, &now);
        assert!(shared.contains("no true image") || shared.contains("another kind"), "{shared}");
    }
}

fn parted<'a>(before: &'a str, now: &str) -> (&'a str, &'a str) {
    before.split_at(before.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count())
}

#[tokio::test]
async fn only_the_original_escapes_what_it_shows() {
    let server = Server::start();
    let board = server.board("s");
    let item = r#"{"text":"看看 \u00e9\ud83d\ude80 \u0007"}"#;
    board.post("trajectories", item).await.is(201);
    board.put("state/键", r#""值""#).await.succeeded();
    let escaped = r#"{"text": "\u770b\u770b \u00e9\ud83d\ude80 \u0007"}"#;
    let written = r#"{"text": "看看 é🚀 \u0007"}"#;
    let text = async |query: &str| {
        let answer = board.get(&format!("prompt?include=trajectories,state{query}")).await;
        let parts = answer.is(200).json();
        let texts = parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
        texts.collect::<String>()
    };
    for (query, is_escaped) in [
        ("", true),
        ("&latest=1", true),
        ("&ascii=true", true),
        ("&ascii=false", false),
        ("&format=responses", false),
        ("&format=anthropic", false),
        ("&format=gemini", false),
        ("&format=gemini&ascii=true", true),
    ] {
        let said = text(query).await;
        assert!(said.contains(if is_escaped { escaped } else { written }), "{query}: {said}");
        let state = if is_escaped { r#"{"\u952e": "\u503c"}"# } else { r#"{"键": "值"}"# };
        assert!(said.contains(state), "{query}: {said}");
    }
    let tag =
        async |query: &str| board.get(&format!("prompt{query}")).await.header("etag").to_owned();
    assert_ne!(tag("").await, tag("?ascii=false").await);
    for wrong in ["", "1", "yes"] {
        board.get(&format!("prompt?ascii={wrong}")).await.problem(400, "invalid-parameter");
    }
}
