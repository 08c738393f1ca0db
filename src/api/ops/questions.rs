//! Questions: answer or skip one.

use crate::api::intake::input::inputs;
use crate::api::intake::kinds::{AnswerText, OnlyTrue};
use crate::api::refusal::{Refusal, invalid_field};
use crate::board::{Command, QuestionCommand, Seq};

inputs! {
    /// An answer, or a skip: exactly one of the two.
    Answering as "NewAnswerBody" one_of {
        /// The answer, not blank.
        answer "answer": AnswerText,
        /// Skip the question: it will never have an answer
        skip "skip": OnlyTrue,
    }
}

impl Answering {
    /// Returns the command that answers or skips a question.
    pub(crate) fn of(self, question: Seq) -> Result<Command, Refusal> {
        let command = match (self.answer, self.skip) {
            (Some(answer), None) => QuestionCommand::Answer { answer },
            (None, Some(())) => QuestionCommand::Skip,
            (Some(_), Some(())) => {
                let why = "send either 'answer' or 'skip', not both";
                return Err(invalid_field("/skip".to_owned(), why));
            }
            (None, None) => {
                return Err(invalid_field(String::new(), "expected 'answer' or 'skip'"));
            }
        };
        Ok(Command::Question(question, command))
    }
}
