"""Client of the Blackboard server: the shared board, memory and state of agents on many devices."""

from . import _problems
from ._async.agents import AsyncAgents
from ._async.blobs import AsyncBlobs
from ._async.client import AsyncClient
from ._async.history import AsyncCheckpoints
from ._async.lease import AsyncLease
from ._async.logs import AsyncLog, AsyncMemory
from ._async.messages import AsyncMessages
from ._async.questions import AsyncQuestions
from ._async.requests import AsyncRequests
from ._async.screenshots import AsyncScreenshots
from ._async.session import AsyncSession
from ._async.state import AsyncState
from ._async.tasks import AsyncTask
from ._async.transactions import AsyncTransaction
from ._async.worker import AsyncWorker
from ._problems import *  # noqa: F403
from ._sync.agents import Agents
from ._sync.blobs import Blobs
from ._sync.client import Client
from ._sync.history import Checkpoints
from ._sync.lease import Lease
from ._sync.logs import Log, Memory
from ._sync.messages import Messages
from ._sync.questions import Questions
from ._sync.requests import Requests
from ._sync.screenshots import Screenshots
from ._sync.session import Session
from ._sync.state import State
from ._sync.tasks import Task
from ._sync.transactions import Transaction
from ._sync.worker import Worker
from ._version import __version__ as __version__
from ._wire import ReadOptions, WorkOptions, WriteOptions, path
from .errors import (
    AccessDenied,
    BadRequest,
    BlackboardError,
    ConditionFailed,
    ConditionImpossible,
    ConditionRefused,
    Conflict,
    ConnectionFailed,
    Gone,
    HistoryGap,
    IncompatibleServer,
    LeaseHeld,
    LeaseLost,
    NotFound,
    Problem,
    RequestCancelled,
    RequestFailed,
    TooLarge,
    Unavailable,
    UnexpectedAnswer,
    Unprocessable,
    UnsupportedRequest,
    UnsupportedValue,
    WaitTimedOut,
)
from .prompts import AnthropicPart, ChatPart, GeminiPart, Prompt, ResponsesPart
from .values import (
    Answer,
    Appended,
    Attention,
    Awaiting,
    Blob,
    Entry,
    Event,
    Notice,
    Page,
    StateValue,
    TransactionResult,
    Written,
)

__all__ = [
    "AccessDenied",
    "Agents",
    "Answer",
    "AnthropicPart",
    "Appended",
    "AsyncAgents",
    "AsyncBlobs",
    "AsyncCheckpoints",
    "AsyncClient",
    "AsyncLease",
    "AsyncLog",
    "AsyncMemory",
    "AsyncMessages",
    "AsyncQuestions",
    "AsyncRequests",
    "AsyncScreenshots",
    "AsyncSession",
    "AsyncState",
    "AsyncTask",
    "AsyncTransaction",
    "AsyncWorker",
    "Attention",
    "Awaiting",
    "BadRequest",
    "BlackboardError",
    "Blob",
    "Blobs",
    "ChatPart",
    "Checkpoints",
    "Client",
    "ConditionFailed",
    "ConditionImpossible",
    "ConditionRefused",
    "Conflict",
    "ConnectionFailed",
    "Entry",
    "Event",
    "GeminiPart",
    "Gone",
    "HistoryGap",
    "IncompatibleServer",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "Log",
    "Memory",
    "Messages",
    "NotFound",
    "Notice",
    "Page",
    "Problem",
    "Prompt",
    "Questions",
    "ReadOptions",
    "RequestCancelled",
    "RequestFailed",
    "Requests",
    "ResponsesPart",
    "Screenshots",
    "Session",
    "State",
    "StateValue",
    "Task",
    "TooLarge",
    "Transaction",
    "TransactionResult",
    "Unavailable",
    "UnexpectedAnswer",
    "Unprocessable",
    "UnsupportedRequest",
    "UnsupportedValue",
    "WaitTimedOut",
    "WorkOptions",
    "Worker",
    "WriteOptions",
    "Written",
    "path",
]
__all__ += _problems.__all__
