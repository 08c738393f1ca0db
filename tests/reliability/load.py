"""Writers that remember every acknowledgement, and a judge that compares them with the server.

Each session has one writer, so its history is a sequence: the writer predicts the board of each revision before it sends
the request that makes it. A server must then show the board of one revision: of the last that was acknowledged or shown
before the fault, or of a later one that was sent. Every log, the state, a memory and the images are compared whole.
"""

import base64
import hashlib
import http.client
import json
import random
import threading
import time

from board_server import picture

LOGS = ("questions", "requests", "trajectories", "screenshots")
AGENT = {"X_Agent_ID": "Worker"}
MEMORY = "agents/Worker/memory"
LARGE_BYTES = 300_000
# A log stays this short, so that the judge reads little.
ITEMS_MAX = 40
# A session is deleted, and made anew by the next write.
DELETED_EACH = 23
GONE = "deleted"


class Broken(Exception):
    """A promise that was not kept."""


# Of an item or a value, which never changes: itself, so that its id stays its own, and its digest.
DIGESTS = {}


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def known_digest(value):
    if id(value) not in DIGESTS:
        DIGESTS[id(value)] = (value, digest(value))
    return DIGESTS[id(value)][1]


class Session:
    """One session: its board as the writer knows it, and what the board is at each revision."""

    def __init__(self, name, seed):
        self.name, self.chance = name, random.Random(seed)
        self.board, self.revision = None, 0
        # The digest of the board that a revision has, if the request that makes it was sent.
        self.boards = {0: GONE}
        # The revisions that were acknowledged or shown, each with the place in the record at which that was known.
        self.known = [(0, 0)]
        self.steps = 0
        self.acknowledged = 0
        # The board that the last request makes.
        self.asked = None
        # A name of a revision and the board of it; and that which the last request gives.
        self.checkpoint = self.marked = None
        often = [self.append] * 6 + [self.transact] * 2 + [self.remember] * 2
        rarely = [self.put, self.add, self.shoot, self.remove, self.trim, self.large, self.replace, self.finish, self.mark]
        self.choices = [*often, *rarely, self.restore, self.claim, self.claim, self.release, self.answer]

    def path(self, below=""):
        return f"/v1/sessions/{self.name}{below}"

    def note(self, place, revision):
        self.known.append((place, revision))

    def least(self, place):
        """The least revision that a server may show after a fault at this place of the record."""
        return max(revision for known, revision in self.known if known <= place)

    def go_on(self, revision):
        """Goes on at a revision that a server shows: the last that was acknowledged, or the one asked for next."""
        if revision != self.revision:
            self.reach(revision)
        self.note(0, revision)

    def reach(self, revision):
        """The last request made this revision."""
        self.board, self.revision = self.asked, revision
        self.checkpoint = self.marked or self.checkpoint

    def next(self):
        """A request, and the board that it makes."""
        self.steps += 1
        self.marked = None
        if self.board is None:
            board, self.checkpoint = new_board(), None
        else:
            board = copied(self.board)
            if self.steps % DELETED_EACH == 0:
                return ("DELETE", self.path(), None, {}), None
            if any(len(board[log]) > ITEMS_MAX for log in LOGS):
                return self.trim(board), board
        request = self.chance.choice(self.choices)(board)
        return (self.append(board) if request is None else request), board

    def item(self, size=None):
        size = size if size is not None else self.chance.choice([10, 200, 900, 3_000])
        return {"step": self.steps, "text": base64.b64encode(self.chance.randbytes(size)).decode(), "n": self.chance.random()}

    def take(self, board, log, items):
        for item in items:
            board["last"][log] += 1
            board[log].append(item)
            board["seqs"][log].append(board["last"][log])

    def append(self, board):
        log = self.chance.choice(LOGS[:3])
        items = [self.item() for _ in range(self.chance.choice([1, 1, 1, 3, 20]))]
        self.take(board, log, items)
        return "POST", self.path(f"/{log}"), items if len(items) > 1 else items[0], {}

    def remember(self, board):
        item = self.item()
        self.take(board, "memory", [item])
        return "POST", self.path(f"/{MEMORY}"), item, {}

    def large(self, board):
        item = self.item(LARGE_BYTES)
        self.take(board, "trajectories", [item])
        return "POST", self.path("/trajectories"), item, {}

    def shoot(self, board):
        image = picture(24, 24, self.chance.randbytes(24 * 24 * 3))
        text = "data:image/png;base64," + base64.b64encode(image).decode()
        self.take(board, "screenshots", [{"metadata": None, "image_path": "", "image_str": text}])
        return "POST", self.path("/screenshots"), image, {"Content_Type": "image/png"}

    def put(self, board):
        name = self.chance.choice("abc")
        value = {"step": self.steps, "list": [self.chance.random() for _ in range(self.chance.choice([1, 5, 100, 20_000]))]}
        board["state"][name] = value
        return "PUT", self.path(f"/state/{name}"), value, {}

    def add(self, board):
        board["state"]["count"] = board["state"].get("count", 0) + 1
        return "PATCH", self.path("/state/count"), {"add": 1}, {}

    def remove(self, board):
        logs = [log for log in LOGS if board["seqs"][log]]
        if not logs:
            return None
        log = self.chance.choice(logs)
        at = self.chance.randrange(len(board["seqs"][log]))
        seq = board["seqs"][log].pop(at)
        del board[log][at]
        return "DELETE", self.path(f"/{log}/{seq}"), None, {}

    def trim(self, board):
        logs = [log for log in LOGS if len(board[log]) > ITEMS_MAX // 4]
        if not logs:
            return None
        log = max(logs, key=lambda one: len(board[one]))
        kept = self.chance.randrange(1, ITEMS_MAX // 4)
        board[log], board["seqs"][log] = board[log][-kept:], board["seqs"][log][-kept:]
        return "DELETE", self.path(f"/{log}?keep={kept}"), None, {}

    def open(self, board):
        """The requests that are not done."""
        return [seq for seq in board["seqs"]["requests"] if seq not in board["done"]]

    def claim(self, board):
        seqs = [seq for seq in self.open(board) if seq not in board["claims"]]
        if not seqs:
            return None
        seq = self.chance.choice(seqs)
        board["claims"][seq] = self.revision + 1
        return "PUT", self.path(f"/requests/{seq}/claim"), {"ttl": "1d"}, AGENT

    def release(self, board):
        seqs = [seq for seq in board["seqs"]["requests"] if seq in board["claims"]]
        if not seqs:
            return None
        seq = self.chance.choice(seqs)
        del board["claims"][seq]
        return "DELETE", self.path(f"/requests/{seq}/claim"), None, AGENT

    def finish(self, board):
        seqs = self.open(board)
        if not seqs:
            return None
        seq = self.chance.choice(seqs)
        board["done"].append(seq)
        fence = {"fence": board["claims"].pop(seq)} if seq in board["claims"] else {}
        return "PUT", self.path(f"/requests/{seq}/done"), {"result": self.steps} | fence, AGENT

    def answer(self, board):
        places = [at for at, item in enumerate(board["questions"]) if "answer" not in item]
        if not places:
            return None
        at = self.chance.choice(places)
        seq, answer = board["seqs"]["questions"][at], f"answer {self.steps}"
        board["questions"][at] = board["questions"][at] | {"answer": answer}
        return "PUT", self.path(f"/questions/{seq}/answer"), {"answer": answer}, {}

    def transact(self, board):
        item, name = self.item(), self.chance.choice("xy")
        self.take(board, "trajectories", [item])
        value = board["state"].get(name)
        test = {"path": name, "absent": True} if value is None else {"path": name, "equals": value}
        board["state"][name] = self.steps
        # The other branch must not be taken.
        transaction = {
            "if": [test],
            "then": [{"append": "trajectories", "item": item}, {"put": name, "value": self.steps}],
            "else": [{"put": "wrong", "value": self.steps}],
        }
        return "POST", self.path("/transactions"), transaction, {}

    def mark(self, board):
        if self.board is None:
            return None
        name = f"c{self.steps}"
        self.marked = (name, copied(board))
        return "POST", self.path("/checkpoints"), {"name": name}, {}

    def restore(self, board):
        if self.checkpoint is None:
            return None
        name, then = self.checkpoint
        # A restore that changes nothing makes no commit; the last seqs stay as they are, and claims end.
        aside = {"last": None, "claims": None}
        if then | aside == board | aside:
            return None
        last = board["last"]
        board.clear()
        board.update(copied(then) | {"last": last, "claims": {}})
        return "POST", self.path("/restore"), {"at": name}, {}

    def replace(self, board):
        items = [self.item() for _ in range(2)]
        board["requests"], board["seqs"]["requests"] = [], []
        self.take(board, "requests", items)
        return "PUT", self.path("/requests"), items, {}


def new_board():
    """The board of a session that is not there: also the seqs of the items, the last of each log, the requests that are
    done, and the fences of those that are claimed."""
    logs = (*LOGS, "memory")
    seqs = {"seqs": {log: [] for log in logs}, "last": {log: 0 for log in logs}}
    return {log: [] for log in logs} | {"state": {}, "done": [], "claims": {}} | seqs


def copied(board):
    """A board whose lists and members are its own; its items and values are shared."""
    parts = {log: list(board[log]) for log in (*LOGS, "memory", "done")}
    seqs = {log: list(seqs) for log, seqs in board["seqs"].items()}
    maps = {name: dict(board[name]) for name in ("state", "claims", "last")}
    return parts | maps | {"seqs": seqs}


def shown(board):
    """What a server shows of a board."""
    if board is None:
        return GONE
    requests = board["seqs"]["requests"]
    done = sorted(seq for seq in board["done"] if seq in requests)
    claims = {seq: fence for seq, fence in board["claims"].items() if seq in requests}
    logs = {log: [known_digest(item) for item in board[log]] for log in (*LOGS, "memory")}
    state = {name: known_digest(value) for name, value in board["state"].items()}
    return digest(logs | {"state": state, "done": done, "claims": claims})


def read(client, session):
    """The board that a server shows, and its revision; nothing of a session that is not there."""
    answer = client.ask("GET", session.path("/blackboard?include=state"))
    if answer.status == 404:
        return None, GONE
    board, revision = expect(answer, 200).json(), int(answer.headers["blackboard-revision"])
    memory = client.ask("GET", session.path(f"/{MEMORY}?limit=1000"))
    board["memory"] = [entry["item"] for entry in memory.json()["entries"]] if memory.status == 200 else []
    requests = expect(client.ask("GET", session.path("/requests?limit=1000")), 200).json()["entries"]
    board["seqs"] = {"requests": [entry["seq"] for entry in requests]}
    board["done"] = [entry["seq"] for entry in requests if "done" in entry]
    board["claims"] = {entry["seq"]: entry["claim"]["fence"] for entry in requests if "claim" in entry}
    return revision, shown(board)


def expect(answer, *statuses):
    if answer.status not in statuses:
        raise Broken(f"answered {answer.status}: {answer.body[:300]!r}")
    return answer


def judge(client, session, place):
    """Compares what a server shows after a fault at this place of the record; the revision that it shows."""
    try:
        revision, found = read(client, session)
    except (OSError, http.client.HTTPException) as cut:
        raise Broken(f"{session.name} cannot be read: {cut!r}") from cut
    least = session.least(place)
    if revision is None:
        fits = [one for one, board in session.boards.items() if board == GONE and one >= least]
        if not fits:
            raise Broken(f"{session.name} is gone; revision {least} was acknowledged")
        return max(fits)
    if revision < least:
        raise Broken(f"{session.name} is at revision {revision}; {least} was acknowledged or shown")
    if revision not in session.boards:
        raise Broken(f"{session.name} is at revision {revision}, which nobody asked for")
    if found != session.boards[revision]:
        raise Broken(f"{session.name} at revision {revision} is not the board of that revision")
    return revision


class Writer:
    """Writes to one session until it is told to stop or the server is gone."""

    def __init__(self, session, place, unknown=(503,), refused=(507,)):
        self.session, self.place = session, place
        self.unknown, self.refused = unknown, refused

    def step(self, client):
        """One request. Returns false if its outcome is not known."""
        session = self.session
        (method, path, body, headers), board = session.next()
        next_revision = session.revision + 1
        session.boards[next_revision], session.asked = shown(board), board
        try:
            answer = client.ask(method, path, body, **headers)
        except (OSError, http.client.HTTPException):
            return False
        if answer.status in self.refused:
            # Nothing of it is stored, and the next write has the same revision.
            del session.boards[next_revision]
            return True
        if answer.status in self.unknown:
            return False
        revision = expect(answer, 200, 201).json()["revision"]
        if revision != next_revision:
            raise Broken(f"{session.name}: {method} {path} made revision {revision}, not {next_revision}")
        session.reach(revision)
        session.note(self.place(), revision)
        session.acknowledged += 1
        return True

    def run(self, server, stopping):
        client = server.client(timeout_s=30)
        while not stopping.is_set() and self.step(client):
            pass


class Watcher:
    """Reads revisions, which must be durable before they are shown."""

    def __init__(self, sessions, place):
        self.sessions, self.place = sessions, place

    def run(self, server, stopping):
        client = server.client(timeout_s=30)
        while not stopping.is_set():
            for session in self.sessions:
                try:
                    answer = client.ask("GET", session.path())
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 200:
                    session.note(self.place(), answer.json()["revision"])
                time.sleep(0.001)


class Load:
    """Writers and a watcher on one server, each a thread; what one of them raises is raised at the end."""

    def __init__(self, server, sessions, place, beside=()):
        self.stopping, self.failed, self.sessions = threading.Event(), None, sessions
        workers = [*(Writer(session, place) for session in sessions), Watcher(sessions, place), *beside]
        self.threads = [threading.Thread(target=self.guard, args=(one, server)) for one in workers]
        for thread in self.threads:
            thread.start()

    def guard(self, worker, server):
        try:
            worker.run(server, self.stopping)
        except Exception as failed:  # noqa: BLE001: raised by `end`
            self.failed = self.failed or failed

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        if self.failed is not None:
            raise self.failed
