//! Rules for questions.
//!
//! The first answer counts, and an expired question gets its default as the answer.

use super::Draft;
use super::logs::find_entry;
use crate::command::Answer;
use crate::command::rejected::Rejected;
use crate::commit::{Change, LogChange};
use crate::json::Kind;
use crate::log::LogName;
use crate::model::open_questions::{AWAITED_AT_ONCE_MAX, Awaited, DEFAULT_BYTES_MAX};
use crate::{InvalidItem, Item, Seq, Ttl, json};

/// The ways in which a question is closed without an answer.
#[derive(Clone, Copy)]
enum Unanswered {
    Skipped,
    Expired,
}

impl Draft<'_> {
    /// Appends questions. Those without an answer get a deadline.
    pub(super) fn ask(
        &mut self,
        items: &[Item],
        ttl: Ttl,
        default: Option<&str>,
    ) -> Result<Answer, Rejected> {
        check_asked(items, default)?;
        let answer = self.append(&LogName::Questions, items)?;
        let [questions, ..] = self.board.logs();
        let last = questions.last_seq();
        if let Some(first) = answer.first_added()
            && self.board.asked.open.range(first..).next().is_some()
        {
            let default = default.map(Box::from);
            let until = Awaited { expires_at: self.now.after(ttl), default };
            self.change(Change::Awaited { first, last, until });
        }
        Ok(answer)
    }

    /// Sets the question's `answer` member. Only the first answer counts.
    pub(super) fn answer_question(
        &mut self,
        question: Seq,
        answer: &str,
    ) -> Result<Answer, Rejected> {
        check_option(self.unanswered(question)?, answer, false)?;
        let mut patch = String::from("{\"answer\":");
        json::quote(answer, &mut patch);
        patch.push('}');
        let answered = json::merge_patch(self.unanswered(question)?.text(), &patch);
        self.end_question(question, &answered)
    }

    pub(super) fn skip_question(&mut self, question: Seq) -> Result<Answer, Rejected> {
        let skipped = ended(self.unanswered(question)?, None, Unanswered::Skipped);
        self.end_question(question, &skipped)
    }

    fn unanswered(&self, question: Seq) -> Result<&Item, Rejected> {
        let entry = find_entry(&self.board, &LogName::Questions, question)?;
        match entry.item.get("answer") {
            Some(_) => Err(Rejected::AlreadyAnswered { question }),
            None => Ok(&entry.item),
        }
    }

    fn end_question(&mut self, question: Seq, text: &str) -> Result<Answer, Rejected> {
        let item = Item::from_json(text)?;
        self.change(Change::Log(LogName::Questions, LogChange::Updated { seq: question, item }));
        Ok(Answer::Done)
    }
}

/// Checks the number of questions, the size of the default, and each question with the default as its answer.
fn check_asked(items: &[Item], default: Option<&str>) -> Result<(), Rejected> {
    let (count, max) = (items.len(), AWAITED_AT_ONCE_MAX);
    if count > max {
        return Err(Rejected::TooManyItems { items: count, max });
    }
    let bytes = default.map_or(0, str::len);
    if bytes > DEFAULT_BYTES_MAX {
        return Err(InvalidItem::TooLarge { bytes }.into());
    }
    for item in items {
        default.map_or(Ok(()), |default| check_option(item, default, true))?;
        Item::from_json(&ended(item, default, Unanswered::Expired))?;
    }
    Ok(())
}

/// Refuses an answer that is not one of the question's options, if its item has `strict_options`.
fn check_option(question: &Item, answer: &str, is_default: bool) -> Result<(), Rejected> {
    if question.get("strict_options") != Some("true") {
        return Ok(());
    }
    let options = question.get("options").filter(|options| json::kind(options) == Kind::Array);
    let Some(options) = options else { return Ok(()) };
    let options = json::elements(options).filter(|option| json::kind(option) == Kind::String);
    let options: Vec<String> = options.map(|option| json::decode(option).into_owned()).collect();
    if options.is_empty() || options.iter().any(|option| option == answer) {
        return Ok(());
    }
    Err(Rejected::NotAnOption {
        options: options.into_iter().take(OPTIONS_SHOWN_MAX).collect(),
        is_default,
    })
}

/// The maximum number of options that a rejection names.
const OPTIONS_SHOWN_MAX: usize = 10;

/// Returns the expired question. The result may exceed the size limit of an item, since an expiry must succeed.
pub(super) fn expired(question: &Item, default: Option<&str>) -> Item {
    Item::trusted(&ended(question, default, Unanswered::Expired))
}

/// Returns the question with this answer and the reason as its last members.
fn ended(question: &Item, default: Option<&str>, why: Unanswered) -> String {
    let why = match why {
        Unanswered::Skipped => "skipped",
        Unanswered::Expired => "expired",
    };
    // In a merge patch, null deletes a member.
    let mut text = json::merge_patch(question.text(), &format!("{{\"{why}\":null}}"));
    text.pop();
    if text.len() > 1 {
        text.push(',');
    }
    text.push_str("\"answer\":");
    match default {
        Some(default) => json::quote(default, &mut text),
        None => text.push_str("null"),
    }
    text + ",\"" + why + "\":true}"
}
