//! Transactions: tests and operations, parsed with pointers to faults.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::questions::Answering;
use super::requests::{Cancelling, Claiming, Finishing, Judging};
use super::{agents, logs, state};
use crate::intake::fields::value_of;
use crate::intake::input::{Kind, Members, inputs, name_schema, named, unions};
use crate::intake::items::Intake;
use crate::intake::kinds::{
    After, Amount, AnswerValue, AnyText, AnyValue, Attempts, FenceOfClaim, Flag, ItemJson,
    Lifetime, Parts, PriorityNumber, Sent, StateJson, TextAsSent, TimeOrDuration, WantedMembers,
};
use crate::intake::targets::{AgentText, LogText, PathText, Whole};
use crate::intake::tasks::ascending;
use crate::refusal::{Place, Refusal, invalid_field, invalid_item};
use crate::view::transaction::{BranchNames, OperationName};
use blackboard_board::json::{DEPTH_MAX, Document};
use blackboard_board::{
    Command, Item, LogName, PlanRequest, Priority, Rank, Revision, Seq, Test, Transaction, Ttl,
};
use blackboard_service::{ImageBytes, ServiceError, SessionHandle};

/// The maximum number of tests in a transaction, and of operations in each branch.
pub(crate) const PARTS_MAX: usize = 1000;

inputs! {
    /// Tests, operations for when all tests hold, and operations for when one fails.
    Transacting as "TransactionBody" {
        /// The tests, all of which must hold.
        tests "if": Parts<Testing, PARTS_MAX> = Vec::new(),
        /// The operations to apply if all tests hold.
        then "then": Parts<Operating, PARTS_MAX>,
        /// The operations to apply if a test fails.
        otherwise "else": Parts<Operating, PARTS_MAX>,
    }

    /// True if the value at a path of the state equals this one: numbers by value, members in any order.
    TestEquals as "TestEquals" {
        path "path": PathText as needed,
        equals "equals": StateJson as needed,
    }

    /// True if a path of the state is absent, or with `false` if it exists.
    TestAbsent as "TestAbsent" {
        path "path": PathText as needed,
        absent "absent": Flag as needed,
    }

    /// True if the value at a path of the state has this tag.
    TestTag as "TestTag" {
        path "path": PathText as needed,
        etag "etag": AnyText as needed,
    }

    /// True if a log has this number of entries.
    TestCount as "TestCount" {
        log "log": LogText as needed,
        count "count": Whole as needed,
    }

    /// True if a request can be claimed now, or with `false` if it cannot.
    TestClaimable as "TestClaimable" {
        request "request": Whole as needed,
        claimable "claimable": Flag as needed,
    }

    /// True if the session is at this revision.
    TestRevision as "TestRevision" {
        revision "revision": Whole as needed,
    }

    /// Sets a value in the state.
    Putting as "PutOperation" {
        path "put": PathText as needed,
        ttl "ttl": Lifetime,
        value "value": StateJson as needed,
    }

    /// Applies a merge patch (RFC 7396) to a value in the state.
    Patching as "PatchOperation" {
        path "patch": PathText as needed,
        value "value": StateJson as needed,
    }

    /// Adds to a number in the state.
    AddingTo as "AddOperation" {
        path "add": PathText as needed,
        value "value": Amount as needed,
    }

    /// Deletes a value from the state.
    Deleting as "DeleteOperation" {
        path "delete": PathText as needed,
    }

    /// Appends an item to a log.
    Appending as "AppendOperation" {
        log "append": LogText as needed,
        item "item": ItemJson as needed,
        /// The requests that must be done first; no effect on logs other than `requests`.
        after "after": After = Vec::new(),
        /// The number of claims that may end without success; no effect on logs other than `requests`.
        attempts "attempts": Attempts,
        /// The priority; no effect on logs other than `requests`.
        priority "priority": PriorityNumber = Priority::DEFAULT,
        /// The time before which the request cannot be claimed; no effect on logs other than `requests`.
        not_before "not_before": TimeOrDuration,
        /// The time at which the request fails; no effect on logs other than `requests`.
        deadline "deadline": TimeOrDuration,
        /// True if another agent must accept the result; no effect on logs other than `requests`.
        review "review": Flag = false,
    }

    /// Claims a request.
    ClaimingOne as "ClaimOperation" {
        request "claim": Whole as needed,
        ttl "ttl": Lifetime = Ttl::MINUTE,
    }

    /// Claims the first claimable request with these members: by priority, then by age.
    ClaimingAny as "ClaimNextOperation" {
        wanted "claim_next": WantedMembers as needed,
        ttl "ttl": Lifetime = Ttl::MINUTE,
    }

    /// Marks a request as done.
    Ending as "DoneOperation" {
        request "done": Whole as needed,
        fence "fence": FenceOfClaim,
        result "result": AnyValue,
    }

    /// Cancels a request.
    CancellingOne as "CancelOperation" {
        request "cancel": Whole as needed,
        reason "reason": AnyValue,
    }

    /// Accepts or refuses the result of a request.
    JudgingOne as "VerdictOperation" {
        request "verdict": Whole as needed,
        accept "accept": Flag as needed,
        fence "fence": FenceOfClaim,
        reason "reason": AnyValue,
    }

    /// Answers an open question.
    AnsweringOne as "AnswerOperation" {
        question "answer": Whole as needed,
        value "value": AnswerValue as needed,
    }

    /// Acknowledges a message.
    AckingOne as "AckOperation" {
        message "ack": Whole as needed,
        /// The agent that it was sent to, by default the author.
        agent "agent": AgentText,
    }

    /// Sets the status of an agent.
    Moving as "StatusOperation" {
        agent "status": AgentText as needed,
        value "value": TextAsSent as needed,
    }
}

unions! {
    /// A test of the board.
    Testing as "TestBody" {
        Equals(TestEquals),
        Absent(TestAbsent),
        Tag(TestTag),
        Count(TestCount),
        Claimable(TestClaimable),
        Revision(TestRevision),
    }

    /// An operation. Each operation sees the changes of the operations before it.
    Operating as "OperationBody" {
        Put(Putting),
        Patch(Patching),
        Add(AddingTo),
        Delete(Deleting),
        Append(Appending),
        Claim(ClaimingOne),
        ClaimNext(ClaimingAny),
        Done(Ending),
        Cancel(CancellingOne),
        Verdict(JudgingOne),
        Answer(AnsweringOne),
        Ack(AckingOne),
        Status(Moving),
    }
}

/// A transaction that was read.
pub struct Read {
    /// The tests, and the operations of both branches.
    pub transaction: Transaction,
    /// The operations' names, for the answer.
    pub names: BranchNames,
    /// The images that the operations refer to.
    pub images: Vec<ImageBytes>,
}

/// An operation that was read.
#[derive(Clone, Debug)]
pub struct ReadOperation {
    command: Command,
    name: OperationName,
    images: Vec<ImageBytes>,
}

impl Transacting {
    /// Returns the transaction for a session. Its tests may name tags of the session, which the door writes its own way.
    pub fn of(
        self,
        session: &SessionHandle,
        tag: impl Fn(String) -> String,
    ) -> Result<Read, ServiceError> {
        let tests = self.tests.into_iter().map(|test| match test {
            ReadTest::Test(test) => Ok(test),
            ReadTest::Tag(TestTag { path, etag }) => {
                let version = state::version_of(session, &path, &tag(etag))?;
                Ok(Test::InVersion(path, version))
            }
        });
        let tests = tests.collect::<Result<_, ServiceError>>()?;
        let mut images = Vec::new();
        let mut branch = |read: Option<Vec<ReadOperation>>| -> (Vec<Command>, Vec<OperationName>) {
            let parts = read.into_iter().flatten().map(|one| {
                images.extend(one.images);
                (one.command, one.name)
            });
            parts.unzip()
        };
        let ((then, then_names), (otherwise, other_names)) =
            (branch(self.then), branch(self.otherwise));
        let transaction = Transaction { tests, then, otherwise };
        let names = BranchNames { then: then_names, otherwise: other_names };
        Ok(Read { transaction, names, images })
    }
}

/// A test that was read. A tag stands for a version of its session.
#[derive(Clone, Debug)]
pub enum ReadTest {
    /// A test of the board.
    Test(Test),
    /// A test by tag.
    Tag(TestTag),
}

impl Kind for Testing {
    type Value = ReadTest;

    fn read(at: &str, value: &str) -> Result<ReadTest, Refusal> {
        let mut members = Members::of(at, value)?;
        let test = match Self::take(&mut members)? {
            Self::Equals(TestEquals { path, equals }) => {
                Test::Equals(path, value_of(&equals.text, DEPTH_MAX, &equals.at)?)
            }
            Self::Absent(TestAbsent { path, absent }) => Test::Absent(path, absent),
            Self::Tag(tag) => return members.finish(ReadTest::Tag(tag)),
            Self::Count(TestCount { log, count }) => {
                Test::Count(log, usize::try_from(count).unwrap_or(usize::MAX))
            }
            Self::Claimable(TestClaimable { request, claimable }) => {
                Test::Claimable(Seq(request), claimable)
            }
            Self::Revision(TestRevision { revision }) => Test::AtRevision(Revision(revision)),
        };
        members.finish(ReadTest::Test(test))
    }

    fn schema() -> RefOr<Schema> {
        named::<Self>(&[])
    }

    fn named(named: &mut Vec<(String, RefOr<Schema>)>) {
        name_schema::<Self>(named);
    }
}

impl Kind for Operating {
    type Value = ReadOperation;

    fn read(at: &str, value: &str) -> Result<ReadOperation, Refusal> {
        let mut members = Members::of(at, value)?;
        let verb = members.choose(Self::INPUTS).and_then(|needed| needed.first().copied());
        let target = verb.and_then(|verb| members.get(verb)).unwrap_or_default();
        let name = OperationName { verb: verb.unwrap_or_default(), target: target.into() };
        let mut images = Vec::new();
        let command = Self::take(&mut members)?.command(&mut images)?;
        members.finish(ReadOperation { command, name, images })
    }

    fn schema() -> RefOr<Schema> {
        named::<Self>(&[])
    }

    fn named(named: &mut Vec<(String, RefOr<Schema>)>) {
        name_schema::<Self>(named);
    }
}

impl Operating {
    /// Returns the command of an operation.
    fn command(self, images: &mut Vec<ImageBytes>) -> Result<Command, Refusal> {
        Ok(match self {
            Self::Put(Putting { path, ttl, value: Sent { at, text } }) => {
                state::put(path, &at, &text, ttl)?
            }
            Self::Patch(Patching { path, value: Sent { at, text } }) => {
                state::merge(path, &at, &text)?
            }
            Self::Add(AddingTo { path, value }) => state::add(path, value),
            Self::Delete(Deleting { path }) => state::remove(path),
            Self::Append(append) => append.command(images)?,
            Self::Claim(ClaimingOne { request, ttl }) => Claiming { ttl }.of(Seq(request)),
            Self::ClaimNext(ClaimingAny { wanted, ttl }) => {
                Command::ClaimNext { wanted, from: Rank::FIRST, ttl }
            }
            Self::Done(Ending { request, fence, result }) => {
                Finishing { fence, result }.of(Seq(request))
            }
            Self::Cancel(CancellingOne { request, reason }) => {
                Cancelling { reason }.of(Seq(request))
            }
            Self::Verdict(JudgingOne { request, accept, fence, reason }) => {
                Judging { accept, fence, reason }.of(Seq(request))
            }
            Self::Answer(AnsweringOne { question, value }) => {
                Answering { answer: Some(value), skip: None }.of(Seq(question))?
            }
            Self::Ack(AckingOne { message, agent }) => {
                Command::Ack { agent, message: Seq(message) }
            }
            Self::Status(Moving { agent, value }) => agents::set_status(agent, &value)?,
        })
    }
}

impl Appending {
    fn command(self, images: &mut Vec<ImageBytes>) -> Result<Command, Refusal> {
        let Self { log, item, after, attempts, priority, not_before, deadline, review } = self;
        let items = vec![one_item(&log, &item, images)?];
        let after = ascending(after);
        let plan = PlanRequest { after, attempts, priority, not_before, deadline, review };
        Ok(logs::append(log, items, plan, None))
    }
}

fn one_item(log: &LogName, item: &Sent, images: &mut Vec<ImageBytes>) -> Result<Item, Refusal> {
    let mut intake = Intake::default();
    let refused = |invalid| invalid_item(&invalid, Place::default()).below(&item.at);
    intake.take(log, &Document::of(&item.text)).map_err(refused)?;
    images.extend(intake.images);
    intake.items.pop().ok_or_else(|| invalid_field(item.at.clone(), "expected an item"))
}
