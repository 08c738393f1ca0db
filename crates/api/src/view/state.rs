//! The state's JSON as part of larger responses, written piece by piece.
use std::sync::Arc;

use crate::offload::work;
use crate::pieces::PIECE_BYTES;
use blackboard_board::Board;
use blackboard_board::StateValue;
use blackboard_service::ServiceError;

/// Renders a value of the state as JSON.
pub fn text_of(value: &StateValue) -> String {
    let mut text = String::with_capacity(usize::try_from(value.bytes()).unwrap_or_default() + 1);
    value.write(&mut text);
    text
}

/// A text, written piece by piece.
pub struct StateText {
    text: String,
    at: usize,
}

impl StateText {
    /// Renders a board's state with `make`, on a thread that may block if the state is large.
    pub async fn of(board: &Arc<Board>, make: fn(&Board) -> String) -> Result<Self, ServiceError> {
        let board = Arc::clone(board);
        let bytes = usize::try_from(board.state().bytes()).unwrap_or(usize::MAX);
        let text = work(bytes, move || Ok(make(&board))).await;
        Ok(Self { text: text.map_err(|_| ServiceError::Fault)?, at: 0 })
    }

    /// Writes the next piece; returns false after the last one.
    pub fn write(&mut self, out: &mut String) -> bool {
        let end = self.text.floor_char_boundary(self.at.saturating_add(PIECE_BYTES));
        out.push_str(self.text.get(self.at..end).unwrap_or_default());
        self.at = end;
        end < self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_text() {
        for text in ["", "x", &"é".repeat(PIECE_BYTES), &format!("x{}", "中文".repeat(PIECE_BYTES))]
        {
            let mut pieces = StateText { text: text.to_owned(), at: 0 };
            let (mut out, mut more) = (String::new(), true);
            while more {
                let start = out.len();
                more = pieces.write(&mut out);
                assert!(out.len() - start <= PIECE_BYTES);
            }
            assert_eq!(out, text);
        }
    }
}
