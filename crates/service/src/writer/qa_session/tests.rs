//! Tests of the Q&A session: each answer is copied once, and new sessions start with them.

use tempfile::TempDir;

use super::*;
use crate::tests::service::{POLICY, append, board, item, name, request, stop, write_to};
use crate::{Options, Service};
use blackboard_board::QuestionCommand;
use blackboard_clock::Clock;
use blackboard_store::{SqliteOptions, SqliteStore, SyncLevel};

fn start(dir: &std::path::Path, last: Option<usize>) -> Service {
    let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
    let store = Arc::new(SqliteStore::open(dir, options).unwrap());
    let qa = QaSession { name: name("qa"), last };
    let options = Options { qa_session: Some(qa), ..Options::default() };
    Service::start_with(store, POLICY, Clock::system(), options).unwrap()
}

fn questions(service: &Service, session: &str) -> Vec<String> {
    let board = board(service, session);
    let log = board.log(&LogName::Questions).unwrap();
    log.iter().map(|entry| entry.item.text().to_owned()).collect()
}

async fn ask(service: &Service, session: &str, texts: &[&str]) {
    let items = texts.iter().map(|text| item(&format!("{{\"question\":\"{text}\"}}"))).collect();
    service.receipt(append(session, LogName::Questions, items), Vec::new()).await.unwrap();
}

fn answer(question: u64, answer: &str) -> Command {
    Command::Question(Seq(question), QuestionCommand::Answer { answer: answer.to_owned() })
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_gathered_and_begin_new_sessions() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path(), Some(2));
    ask(&service, "s", &["a?", "b?", "c?", "d?"]).await;
    let done = |command| service.receipt(write_to("s", command), Vec::new());
    done(answer(1, "A")).await.unwrap();
    let both = Transaction { then: vec![answer(2, "B"), answer(3, "C")], ..Transaction::default() };
    done(Command::Transact(Box::new(both))).await.unwrap();
    // Neither one that is skipped nor a refused answer.
    done(Command::Question(Seq(4), QuestionCommand::Skip)).await.unwrap();
    done(answer(1, "again")).await.unwrap_err();
    let gathered = [("a", "A"), ("b", "B"), ("c", "C")]
        .map(|(asked, said)| format!("{{\"question\":\"{asked}?\",\"answer\":\"{said}\"}}"));
    assert_eq!(questions(&service, "qa"), gathered);
    service.receipt(request("new", "{}"), Vec::new()).await.unwrap();
    assert_eq!(questions(&service, "new"), gathered[1..]);
    stop(service).await;
    let again = start(dir.path(), None);
    assert_eq!(questions(&again, "qa"), gathered);
    again.receipt(request("newer", "{}"), Vec::new()).await.unwrap();
    assert_eq!(questions(&again, "newer"), gathered);
    stop(again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_where_answers_are_gathered_is_there_once() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path(), None);
    ask(&service, "qa", &["a?"]).await;
    service.receipt(write_to("qa", answer(1, "A")), Vec::new()).await.unwrap();
    assert_eq!(questions(&service, "qa"), ["{\"question\":\"a?\",\"answer\":\"A\"}"]);
    stop(service).await;
}
