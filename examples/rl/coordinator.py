"""The coordinator of the job group: curriculum, weights and rollouts over HTTP.

It reads

    FRAY_PORT_HTTP  where to listen
    OUT             directory that all hosts see
    WORKERS         how many rollout workers must leave before it ends

and ends once the trainer has finished and all workers know. What must outlive
it is in OUT/coordinator.json, so that it can be started again at any time.
"""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import files

LESSONS = (50, 100, 200, 500)  # longest episode, in steps
MASTERED = 0.8  # of the longest episode, on average
WINDOW = 32  # episodes that the average is over
QUEUE = 64  # episodes that wait for the trainer; more make workers wait
LONGEST_WAIT = 5.0  # seconds in which a call waits for others
LEAVE_SECONDS = 600  # for which it stays for a worker that does not leave
METHODS = ("lesson", "publish", "put", "take", "finish", "leave")  # that other jobs may call


class Coordinator:
    """What the jobs of the group have in common."""

    def __init__(self, path: Path):
        self._path = path
        self._changed = threading.Condition()
        self._recent: list[int] = []
        self._queue: list[dict] = []
        self._left: set[str] = set()
        self._saved = {"lesson": 0, "step": 0, "checkpoint": "", "finished": False}
        if path.exists():
            self._saved |= files.read(path)

    def lesson(self) -> dict:
        """What to practise now, and with which weights."""
        with self._changed:
            return {
                "lesson": self._saved["lesson"],
                "limit": LESSONS[self._saved["lesson"]],
                "step": self._saved["step"],
                "checkpoint": self._saved["checkpoint"],
                "finished": self._saved["finished"],
            }

    def publish(self, step: int, checkpoint: str) -> dict:
        """New weights are in the file checkpoint. Rollouts of much older ones are dropped."""
        with self._changed:
            self._save(step=step, checkpoint=checkpoint)
            self._queue = [rollout for rollout in self._queue if rollout["step"] >= step - 2]
            self._changed.notify_all()
            return {}

    def put(self, lesson: int, step: int, episode: list) -> dict:
        """Hand in a rollout, and its length to the curriculum."""
        with self._changed:
            self._report(lesson, len(episode))
            self._changed.wait_for(lambda: self._saved["finished"] or len(self._queue) < QUEUE, LONGEST_WAIT)
            if len(self._queue) < QUEUE:
                self._queue.append({"step": step, "episode": episode})
                self._changed.notify_all()
            return {}

    def take(self, count: int) -> dict:
        """Up to count rollouts; fewer if no more come in for a while."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) >= count, LONGEST_WAIT)
            taken, self._queue = self._queue[:count], self._queue[count:]
            self._changed.notify_all()
            return {"episodes": [rollout["episode"] for rollout in taken]}

    def finish(self) -> dict:
        """The trainer is content."""
        with self._changed:
            self._save(finished=True)
            self._changed.notify_all()
            return {}

    def leave(self, worker: int) -> dict:
        """A worker knows that it is finished."""
        return {}

    def left(self, who: str) -> None:
        """The trainer or a worker has the answer to its last call, and makes no other."""
        with self._changed:
            self._left.add(who)
            self._changed.notify_all()

    def wait_for_end(self, workers: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._saved["finished"])
            # One that died on the way out must not keep the others here.
            self._changed.wait_for(lambda: len(self._left) > workers, LEAVE_SECONDS)

    def _report(self, lesson: int, length: int) -> None:
        if lesson != self._saved["lesson"]:
            return
        self._recent = [*self._recent, length][-WINDOW:]
        average = sum(self._recent) / WINDOW
        if average >= MASTERED * LESSONS[lesson] and lesson + 1 < len(LESSONS):
            print(f"lesson {lesson} mastered at step {self._saved['step']}: {average:.0f} of {LESSONS[lesson]}", flush=True)
            self._recent = []
            self._save(lesson=lesson + 1)

    def _save(self, **changes) -> None:
        self._saved |= changes
        files.write(self._path, self._saved)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    coordinator: Coordinator

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, {"ok": True})
        else:
            self._answer(404, {"error": f"nothing at {self.path}"})

    def do_POST(self) -> None:
        arguments = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        name = self.path.removeprefix("/")
        if name not in METHODS:
            self._answer(404, {"error": f"no method {name!r}"})
            return
        try:
            answer = getattr(self.coordinator, name)(**arguments)
        except TypeError as error:
            self._answer(400, {"error": str(error)})
            return
        self._answer(200, answer)
        # Only now: the coordinator may end once all have left.
        if name == "finish":
            self.coordinator.left("trainer")
        elif name == "leave":
            self.coordinator.left(f"worker {arguments['worker']}")

    def _answer(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Say nothing: there are hundreds of calls a second."""


def main() -> None:
    coordinator = Coordinator(Path(os.environ["OUT"]) / "coordinator.json")
    Handler.coordinator = coordinator
    server = ThreadingHTTPServer(("", int(os.environ["FRAY_PORT_HTTP"])), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening on port {server.server_port}", flush=True)
    began = time.monotonic()
    coordinator.wait_for_end(int(os.environ["WORKERS"]))
    print(f"finished after {time.monotonic() - began:.1f} s", flush=True)
    server.shutdown()


if __name__ == "__main__":
    main()
