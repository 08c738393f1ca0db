//! Work on requests: claim one or the next, release, finish, fail, retry, cancel, judge.

use crate::intake::input::inputs;
use crate::intake::kinds::{
    AnyValue, FenceOfClaim, Flag, Lifetime, RetryIn, TimeOrDuration, WantedMembers,
};
use blackboard_board::{
    Answer, Board, Claim, Command, Entry, LogName, RequestCommand, Seq, Ttl, Wanted,
};
use blackboard_service::{NextClaim, Receipt};

inputs! {
    /// The duration of a claim.
    Claiming as "NewClaimBody" {
        /// A whole number with `ms`, `s`, `m`, `h` or `d`; one minute by default.
        ttl "ttl": Lifetime = Ttl::MINUTE,
    }

    /// The request to look for.
    ClaimingNext as "NextClaimBody" {
        /// A whole number with `ms`, `s`, `m`, `h` or `d`; one minute by default.
        ttl "ttl": Lifetime = Ttl::MINUTE,
        wanted "match": WantedMembers = Wanted::default(),
    }

    /// The end of a request.
    Finishing as "NewDoneBody" {
        /// The fence of the claim under which the work was done.
        fence "fence": FenceOfClaim,
        /// The result, at most 1 MiB.
        result "result": AnyValue,
    }

    /// The end of a claim without success.
    Failing as "NewFailureBody" {
        /// The fence of the claim under which the work failed.
        fence "fence": FenceOfClaim,
        /// The reason, at most 1 MiB.
        reason "reason": AnyValue,
        /// The time until the request can be claimed again, at most `7d`: a whole number with `ms`, `s`, `m`, `h` or `d`.
        retry_in "retry_in": RetryIn,
    }

    /// The terms of another try.
    Retrying as "NewRetryBody" {
        /// The new deadline: RFC 3339, or a duration from now. Without it the request has none.
        deadline "deadline": TimeOrDuration,
    }

    /// The cancellation of a request.
    Cancelling as "NewCancelBody" {
        /// The reason, at most 1 MiB.
        reason "reason": AnyValue,
    }

    /// The verdict on a result.
    Judging as "NewVerdictBody" {
        /// True if the request is done with this result; false for a failed attempt.
        accept "accept": Flag as needed,
        /// The fence of the attempt, as `in_review` shows it. Needed if the request was claimed.
        fence "fence": FenceOfClaim,
        /// The reason, at most 1 MiB.
        reason "reason": AnyValue,
    }
}

impl Claiming {
    /// Returns the command that claims a request, or renews the claim.
    pub fn of(self, request: Seq) -> Command {
        Command::Request(request, RequestCommand::Claim { ttl: self.ttl })
    }
}

impl ClaimingNext {
    /// Returns the claim of the next request.
    pub fn next(self) -> NextClaim {
        NextClaim { wanted: self.wanted, ttl: self.ttl }
    }
}

impl Finishing {
    /// Returns the command that finishes a request.
    pub fn of(self, request: Seq) -> Command {
        let Self { fence, result } = self;
        Command::Request(request, RequestCommand::Finish { fence, result })
    }
}

impl Failing {
    /// Returns the command that ends the claim of a request without success.
    pub fn of(self, request: Seq) -> Command {
        let Self { fence, reason, retry_in } = self;
        Command::Request(request, RequestCommand::Fail { fence, reason, retry_in })
    }
}

impl Retrying {
    /// Returns the command that makes a request claimable again.
    pub fn of(self, request: Seq) -> Command {
        Command::Request(request, RequestCommand::Retry { deadline: self.deadline })
    }
}

impl Cancelling {
    /// Returns the command that cancels a request.
    pub fn of(self, request: Seq) -> Command {
        Command::Request(request, RequestCommand::Cancel { reason: self.reason })
    }
}

impl Judging {
    /// Returns the command that judges a request's result.
    pub fn of(self, request: Seq) -> Command {
        let Self { accept: accepted, fence, reason } = self;
        Command::Request(request, RequestCommand::Judge { fence, accepted, reason })
    }
}

/// A request that the caller has claimed.
pub struct Claimed<'a> {
    /// The claim with its fence.
    pub claim: &'a Claim,
    /// True if it was unclaimed before, or claimed by another agent.
    pub is_won: bool,
    /// The request's number.
    pub seq: Seq,
    /// The request; `None` only by a bug of the server.
    pub entry: Option<&'a Entry>,
}

impl<'a> Claimed<'a> {
    /// Returns what a claim of this request, or of the next one, has claimed.
    pub fn of(receipt: &'a Receipt, named: Option<Seq>) -> Option<Self> {
        let (seq, claim, is_won) = match (&receipt.answer, named) {
            (Answer::Claimed { claim, won }, Some(seq)) => (seq, claim, *won),
            (Answer::Next(Some((seq, claim))), _) => (*seq, claim, true),
            _ => return None,
        };
        Some(Self { claim, is_won, seq, entry: request(&receipt.board, seq) })
    }
}

/// Returns a request of a board.
pub fn request(board: &Board, seq: Seq) -> Option<&Entry> {
    board.log(&LogName::Requests)?.get(seq).map(|entry| &**entry)
}
