//! Tests of messages and of what waits for an agent.

use proptest::prelude::*;

use super::board::*;
use super::plan::{history, steps};
use crate::model::attention::unacked::UNACKED_MAX;
use crate::*;
use crate::{AgentCommand, LogCommand, RequestCommand};

fn ack(name: &str, message: u64) -> Command {
    Command::Ack { agent: Some(agent(name)), message: Seq(message) }
}

/// Carries out a command of an agent.
fn act(board: &mut Board, name: &str, command: Command) {
    take(board, &write_by(name, command), 0).unwrap();
}

fn claim(request: u64) -> Command {
    Command::Request(Seq(request), RequestCommand::Claim { ttl: ttl("60s") })
}

fn wanted(device: &str) -> Wanted {
    Wanted([("device".to_owned(), json(&format!("\"{device}\"")))].into())
}

/// The seqs of a list of an agent's attention, and how many there are.
fn waiting(board: &Board, kind: Waking, name: &str, after: u64) -> (usize, Vec<u64>) {
    let matching = Matching::of(board, &Wanted::default());
    let found = board.attention(&agent(name), &[kind], &matching, Some(Revision(after)));
    let [list] = found.lists.as_slice() else { panic!("{found:?}") };
    (list.count, list.newest.iter().map(|(seq, _)| seq.0).collect())
}

#[test]
fn a_message_waits_until_it_is_acknowledged_once() {
    let mut board = board_of([append(messages("A"), items(["{}", "{}", "{}"]))]);
    assert_eq!(waiting(&board, Waking::Messages, "A", 99), (3, vec![1, 2, 3]));
    assert!(board.agents().is_empty(), "a message registers nobody");
    let first = carry_out(&mut board, ack("A", 2)).commit.unwrap();
    assert_eq!(first.kind(), "acked");
    assert_eq!(carry_out(&mut board, ack("A", 2)).commit, None);
    assert_eq!(waiting(&board, Waking::Messages, "A", 0), (2, vec![1, 3]));
    let log = board.log(&messages("A")).unwrap();
    assert_eq!(log.get(Seq(2)).unwrap().acked_at, Some(first.at));
    assert!(matches!(refused(&board, ack("A", 4)), Rejected::NoEntry { .. }));
    assert!(matches!(refused(&board, ack("B", 1)), Rejected::NoEntry { .. }));
    let nobodys = Command::Ack { agent: None, message: Seq(1) };
    assert_eq!(refused(&board, nobodys), Rejected::AgentRequired);
}

#[test]
fn a_restore_keeps_acknowledgements() {
    let mut board = board_of([append(messages("A"), items([r#"{"text":"1"}"#]))]);
    let then = std::sync::Arc::new(board.clone());
    carry_out(&mut board, ack("A", 1));
    carry_out(&mut board, append(messages("A"), items([r#"{"text":"2"}"#])));
    let restore =
        || Command::Session(SessionCommand::Restore { then: std::sync::Arc::clone(&then) });
    carry_out(&mut board, restore());
    let log = board.log(&messages("A")).unwrap();
    assert_eq!(log.len(), 1);
    assert!(log.get(Seq(1)).unwrap().acked_at.is_some());
    assert_eq!(waiting(&board, Waking::Messages, "A", 0), (0, vec![]));
    assert_eq!(carry_out(&mut board, restore()).commit, None, "nothing differs any more");
    carry_out(&mut board, append(messages("A"), items(["{}"])));
    assert_eq!(waiting(&board, Waking::Messages, "A", 0), (1, vec![3]));
}

#[test]
fn an_agent_has_so_many_unacknowledged_messages() {
    let many = |count: usize| append(messages("A"), vec![item("{}"); count]);
    let mut board = board_of([many(UNACKED_MAX)]);
    let full = Rejected::TooManyUnacked { agent: agent("A") };
    assert_eq!(refused(&board, many(1)), full);
    carry_out(&mut board, append(messages("B"), items(["{}"])));
    carry_out(&mut board, ack("A", 1));
    assert_eq!(refused(&board, many(2)), full);
    carry_out(&mut board, many(1));
    let replace = Command::Log(messages("A"), LogCommand::Replace { items: items(["{}"]) });
    carry_out(&mut board, replace);
    assert_eq!(board.unacked().count(&agent("A")), 1);
}

#[test]
fn messages_are_limited_by_their_own_setting_only() {
    let keep = |max| {
        let settings = SettingsPatch { max_items: Set::To(max), ..SettingsPatch::default() };
        let (labels, qa_pairs) = (Set::Keep, Vec::new());
        Command::Session(SessionCommand::Put { settings: Set::To(settings), labels, qa_pairs })
    };
    let one = std::num::NonZeroUsize::new(1);
    let mut board = board_of([keep(MaxItems::All(one.unwrap()))]);
    carry_out(&mut board, append(messages("A"), items(["{}", "{}"])));
    assert_eq!(board.log(&messages("A")).unwrap().len(), 2);
    carry_out(
        &mut board,
        keep(MaxItems::Each(MaxItemsEach { messages: one, ..Default::default() })),
    );
    assert_eq!(board.log(&messages("A")).unwrap().len(), 1);
    check_unacked(&board);
}

#[test]
fn an_agents_removal_takes_its_messages() {
    let mut board = board_of([append(messages("A"), items(["{}"]))]);
    let profile = item("{}");
    carry_out(&mut board, Command::Agent(agent("A"), AgentCommand::Put { profile }));
    carry_out(&mut board, Command::Agent(agent("A"), AgentCommand::Remove));
    assert_eq!(board.log(&messages("A")).unwrap().len(), 0);
    carry_out(&mut board, append(messages("A"), items(["{}"])));
    assert_eq!(waiting(&board, Waking::Messages, "A", 0), (1, vec![2]), "its seqs go on");
    carry_out(&mut board, Command::RemoveAgents);
    assert_eq!(waiting(&board, Waking::Messages, "A", 0), (0, vec![]));
}

#[test]
fn an_answer_waits_for_who_asked() {
    let ask = |item| append(LogName::Questions, items([item]));
    let mut board = absent();
    act(&mut board, "A", ask(r#"{"question":"1"}"#));
    act(&mut board, "A", ask(r#"{"question":"2","answer":"known"}"#));
    assert_eq!(waiting(&board, Waking::Answers, "A", 0), (0, vec![]), "posted with its answer");
    let answer = QuestionCommand::Answer { answer: "yes".to_owned() };
    let now = carry_out(&mut board, Command::Question(Seq(1), answer)).board.revision();
    assert_eq!(waiting(&board, Waking::Answers, "A", 0), (1, vec![1]));
    assert_eq!(waiting(&board, Waking::Answers, "A", now.0), (0, vec![]));
    assert_eq!(waiting(&board, Waking::Answers, "B", 0), (0, vec![]));
}

#[test]
fn a_cancel_waits_for_the_holder_and_a_review_for_others() {
    let mut board = board_of([append(LogName::Requests, items(["{}", "{}"]))]);
    act(&mut board, "A", claim(1));
    let cancel = Command::Request(Seq(1), RequestCommand::Cancel { reason: None });
    carry_out(&mut board, cancel);
    assert_eq!(waiting(&board, Waking::Cancels, "A", 99), (1, vec![1]));
    assert_eq!(waiting(&board, Waking::Cancels, "B", 0), (0, vec![]));
    let release = Command::Request(Seq(1), RequestCommand::Release);
    act(&mut board, "A", release);
    assert_eq!(waiting(&board, Waking::Cancels, "A", 0), (0, vec![]));
    let plan = PlanRequest { review: true, ..PlanRequest::default() };
    carry_out(&mut board, Command::Plan { items: items(["{}"]), plan });
    act(&mut board, "A", claim(3));
    let finish = RequestCommand::Finish { fence: None, result: None };
    act(&mut board, "A", Command::Request(Seq(3), finish));
    assert_eq!(waiting(&board, Waking::Reviews, "A", 0), (0, vec![]));
    assert_eq!(waiting(&board, Waking::Reviews, "B", 99), (1, vec![3]));
}

#[test]
fn a_list_shows_its_newest_entries() {
    let many = ATTENTION_ENTRIES_MAX + 5;
    let board = board_of([append(LogName::Requests, vec![item("{}"); many])]);
    let (count, newest) = waiting(&board, Waking::Claimable, "A", 0);
    assert_eq!((count, newest.len(), newest[0]), (many, ATTENTION_ENTRIES_MAX, 6));
    assert!(newest.is_sorted());
}

#[test]
fn what_a_cap_held_back_comes_when_it_is_free() {
    let caps = vec![Cap { by: Some("device".to_owned()), max: 1 }];
    let settings = SettingsPatch { running_max: Set::To(caps), ..SettingsPatch::default() };
    let (labels, qa_pairs) = (Set::Keep, Vec::new());
    let put =
        Command::Session(SessionCommand::Put { settings: Set::To(settings), labels, qa_pairs });
    let linux = r#"{"device":"linux"}"#;
    let mut board = board_of([put, append(LogName::Requests, items([linux, linux]))]);
    act(&mut board, "A", claim(1));
    let matching = Matching::of(&board, &wanted("linux"));
    assert_eq!(matching.claimable_count(Revision(0)), 0);
    let before = board.revision();
    let release = Command::Request(Seq(1), RequestCommand::Release);
    act(&mut board, "A", release);
    let matching = matching.on(&board);
    assert_eq!(matching.claimable(before).map(|seq| seq.0).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(matching.claimable_count(board.revision()), 0);
    assert_eq!(Matching::of(&board, &wanted("windows")).len(), 0);
    act(&mut board, "A", claim(1));
    let before = board.revision();
    for caps in [Set::To(vec![Cap { by: None, max: 9 }]), Set::Reset] {
        let settings = SettingsPatch { running_max: caps, ..SettingsPatch::default() };
        let (labels, qa_pairs) = (Set::Keep, Vec::new());
        carry_out(
            &mut board,
            Command::Session(SessionCommand::Put { settings: Set::To(settings), labels, qa_pairs }),
        );
        let found = matching.on(&board);
        assert_eq!(found.claimable(before).map(|seq| seq.0).collect::<Vec<_>>(), [2], "{found:?}");
        assert_eq!(found.claimable_count(before), 1);
    }
}

#[test]
fn a_cursor_beyond_the_head_shows_all() {
    let board = board_of([append(LogName::Requests, items(["{}"]))]);
    assert_eq!(waiting(&board, Waking::Claimable, "A", 1), (0, vec![]));
    assert_eq!(waiting(&board, Waking::Claimable, "A", 9), (1, vec![1]));
}

#[test]
fn no_request_waits_while_the_budget_is_passed() {
    let budget = |max: f64| {
        let cost_max = Set::To(Budget::of(max).unwrap());
        let settings = SettingsPatch { cost_max, ..SettingsPatch::default() };
        let (labels, qa_pairs) = (Set::Keep, Vec::new());
        Command::Session(SessionCommand::Put { settings: Set::To(settings), labels, qa_pairs })
    };
    let requests = append(LogName::Requests, items(["{}"]));
    let costs = append(memory("A"), items([r#"{"cost":5}"#]));
    let mut board = board_of([budget(1.0), requests, costs]);
    assert_eq!(waiting(&board, Waking::Claimable, "A", 0), (0, vec![]));
    let matching = Matching::of(&board, &Wanted::default());
    let found = board.attention(&agent("A"), &[Waking::Claimable], &matching, None);
    assert_eq!(found.next, Revision(0), "what is not shown moves no cursor");
    let before = board.revision().0;
    carry_out(&mut board, budget(9.0));
    assert_eq!(waiting(&board, Waking::Claimable, "A", before), (1, vec![1]));
}

/// Requests with these members, by a scan.
fn scanned(board: &Board, wanted: &Wanted, in_review: bool) -> Vec<Seq> {
    let [_, requests, ..] = board.logs();
    let fits = requests.iter().filter(|entry| wanted.fits(&entry.item));
    let fits = fits.filter(|entry| match in_review {
        false => board.is_claimable(entry.seq),
        true => entry.work.as_deref().and_then(Work::in_review).is_some(),
    });
    fits.map(|entry| entry.seq).rev().collect()
}

proptest! {
    #[test]
    fn requests_match_from_board_to_board_as_at_once(steps in steps(60)) {
        let all = [Wanted::default(), Wanted([("step".to_owned(), json("1"))].into())];
        let mut boards = history(&steps).into_iter().map(|(board, _)| board).peekable();
        prop_assume!(boards.peek().is_some());
        let first = boards.next().unwrap();
        let mut kept = all.each_ref().map(|wanted| Matching::of(&first, wanted));
        let mut id = first.id();
        for board in boards {
            for (matching, wanted) in kept.iter_mut().zip(&all) {
                *matching = if board.id() == id { matching.on(&board) } else { Matching::of(&board, wanted) };
                let expected = scanned(&board, wanted, false);
                prop_assert_eq!(matching.claimable_count(Revision(0)), expected.len());
                prop_assert_eq!(matching.claimable(Revision(0)).collect::<Vec<_>>(), expected);
                let reviews: Vec<_> = matching.reviews(&agent("nobody")).collect();
                prop_assert_eq!(reviews, scanned(&board, wanted, true));
                // Nothing that changed is passed over.
                let last = Revision(board.revision().0.saturating_sub(1));
                let [_, requests, ..] = board.logs();
                for seq in scanned(&board, wanted, false) {
                    let is_new = requests.get(seq).is_some_and(|entry| entry.revision > last);
                    prop_assert!(!is_new || matching.claimable(last).any(|found| found == seq));
                }
            }
            id = board.id();
        }
    }
}
