//! People who take part: a question to one, a pause by another.

use reqwest::Client;
use serde_json::json;

use crate::harness::World;

/// The documents' CONFIRM and PENDING (`infrastructure/agents/design/state.md`).
#[tokio::test]
async fn a_person_is_asked_and_answers_by_http() {
    let world = World::new().await;
    let _agent = world.agent(
        "AppAgent",
        "AppAgent",
        &json!({"book a flight": [
            {"thought": "whereto", "status": "PENDING", "question": "Where to?"},
            {"thought": "consent", "status": "CONFIRM", "question": "Pay 99 EUR?"},
            {"thought": "booked", "status": "FINISH", "result": "booked"},
        ], "delete everything": [
            {"thought": "consent", "status": "CONFIRM", "question": "Really?"},
        ]}),
        &["--server", &world.sandbox("app", ""), "--tools", "list_files"],
    );
    let seq = world.post(&json!({"agent": "AppAgent", "request": "book a flight"})).await;
    let http = Client::builder().no_proxy().build().unwrap();
    for (number, status, answer) in [(1, "PENDING", "Oslo"), (2, "CONFIRM", "yes")] {
        world.when(&format!("questions/{number}"), |entry| entry["item"].is_object()).await;
        world.when("agents/AppAgent", |agent| agent["status"] == status).await;
        let url = world.url.join(&format!("v1/sessions/demo/questions/{number}/answer")).unwrap();
        let answered = http
            .put(url)
            .bearer_auth(&world.token)
            .json(&json!({"answer": answer}))
            .send()
            .await
            .unwrap();
        assert_eq!(answered.status(), 200);
    }
    assert_eq!(world.done(seq).await["result"], json!("booked"));
    // A refusal fails the request.
    let item = json!({"agent": "AppAgent", "request": "delete everything"});
    let refused = world.request(json!({"append": "requests", "item": item, "attempts": 1})).await;
    world.when("questions/3", |entry| entry["item"].is_object()).await;
    world.put("questions/3/answer", &json!({"answer": "no"})).await;
    let failed =
        world.when(&format!("requests/{refused}"), |entry| entry.get("failed").is_some()).await;
    assert_eq!(failed["failed"]["reason"]["status"], json!("FAIL"));
    insta::assert_snapshot!("person", world.prompt().await);
}

/// An agent that is paused between two steps, and directives that it need not obey.
#[tokio::test]
async fn an_agent_is_paused_and_obeys_no_stale_directive() {
    let world = World::new().await;
    let asks =
        |question: &str| json!({"thought": question, "status": "PENDING", "question": question});
    let ends = json!({"thought": "done", "status": "FINISH", "result": "done"});
    let script = json!({"first": [asks("One?"), ends], "second": [asks("Two?"), ends]});
    let _agent = world.agent("Worker", "LinuxAgent", &script, &[]);
    let seq = world.post(&json!({"agent": "Worker", "request": "first"})).await;
    // While it is in a step it is paused; the step ends, and the next does not begin.
    world.when("questions/1", |entry| entry["item"].is_object()).await;
    world.put("state/agents/Worker/paused", &json!({"by": "person"})).await;
    world.put("questions/1/answer", &json!({"answer": "1"})).await;
    world.when("agents/Worker", |agent| agent["paused"] == true).await;
    assert_eq!(world.items("trajectories").await.len(), 1);
    let path = "state/agents/Worker/paused";
    world.board.write(reqwest::Method::DELETE, path, &json!(null)).await.unwrap();
    assert_eq!(world.done(seq).await["steps"], json!(2));
    // One that names another request is stale, and so is one that was lifted before the step ended.
    world.put(path, &json!({"by": "person", "request": seq})).await;
    let seq = world.post(&json!({"agent": "Worker", "request": "second"})).await;
    world.when("questions/2", |entry| entry["item"].is_object()).await;
    world.put(path, &json!({"by": "person"})).await;
    world.board.write(reqwest::Method::DELETE, path, &json!(null)).await.unwrap();
    world.put("questions/2/answer", &json!({"answer": "2"})).await;
    assert_eq!(world.done(seq).await["steps"], json!(2));
    let audit = world.board.get("agents/Worker", &[]).await.unwrap().body;
    assert_eq!((audit.get("paused"), &audit["status"]), (None, &json!("FINISH")));
    insta::assert_snapshot!("pause", world.prompt().await);
}
