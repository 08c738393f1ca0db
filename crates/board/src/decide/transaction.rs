//! Transactions: tests, then one of two branches, atomically.

use super::Draft;
use crate::command::rejected::{Branch, Rejected};
use crate::command::{Answer, Test, Transaction};
use crate::{Board, Log};

impl Draft<'_> {
    pub(super) fn transact(&mut self, transaction: &Transaction) -> Result<Answer, Rejected> {
        let succeeded = transaction.tests.iter().all(|test| holds(self.before, test));
        let (branch, commands) = if succeeded {
            (Branch::Then, &transaction.then)
        } else {
            (Branch::Else, &transaction.otherwise)
        };
        let mut results = Vec::with_capacity(commands.len());
        for (index, command) in commands.iter().enumerate() {
            let refused = |rejected| {
                let rejected = Box::new(rejected);
                Rejected::InOperation { branch, index, rejected }
            };
            results.push(self.carry_out(command).map_err(refused)?);
        }
        Ok(Answer::Transacted { succeeded, results })
    }
}

fn holds(board: &Board, test: &Test) -> bool {
    match test {
        Test::Equals(path, json) => {
            board.state.value(path).is_some_and(|value| value.equals(json.text()))
        }
        Test::Absent(path, absent) => board.state.value(path).is_none() == *absent,
        Test::InVersion(path, version) => {
            let present = board.state.value(path).map(|value| board.at_version(value.changed()));
            present.is_some() && present == *version
        }
        Test::Count(log, count) => board.log(log).map_or(0, Log::len) == *count,
        Test::Claimable(request, claimable) => board.is_claimable(*request) == *claimable,
        Test::AtRevision(revision) => board.revision == *revision,
    }
}
