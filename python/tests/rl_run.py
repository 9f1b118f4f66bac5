"""A run in little, as modules of fray.rl meet it: roles by the wire, and an inference service by HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rl.config import Config
from fray.rl.data import JsonlDataLoader, MockDataLoader
from fray.rl.leases import LeasedLoader
from fray.rl.wire import unpack
from fray.rpc import ActorServer, ClusterResolver


class Signals:
    """A list that can be waited on."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.values: list[Any] = []

    def add(self, value: Any) -> None:
        with self._changed:
            self.values.append(value)
            self._changed.notify_all()

    def until(self, done: Callable[[list[Any]], bool]) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.values), PATIENCE), self.values
            return list(self.values)

    def count(self, number: int) -> list[Any]:
        return self.until(lambda values: len(values) >= number)


class Loader(LeasedLoader):
    """Tells of tasks that end."""

    def __init__(self, loader: Any, **options: Any) -> None:
        super().__init__(loader, **options)
        self.ended = Signals()
        self.came_back = Signals()

    def complete(self, lease_id: str, outcome: Any) -> None:
        super().complete(lease_id, outcome)
        self.ended.add(outcome)

    def put_back(self, lease_id: str) -> bool:
        done = super().put_back(lease_id)
        self.came_back.add(lease_id)
        return done


class Pool:
    """A trajectory pool; `answers` are given first of all, and `fail` has it raise."""

    def __init__(self) -> None:
        self.put = Signals()
        self.answers: deque[str] = deque()
        self.known: set[str] = set()
        self.batches: deque[dict[str, Any]] = deque()
        self.taken: dict[str, tuple[str, dict[str, Any]]] = {}
        self.acked = Signals()

    def put_trajectory(self, header: dict[str, Any], payload: bytes) -> str:
        outcome = self.answers.popleft() if self.answers else "success"
        if outcome == "success" and header.get("task_id") in self.known:
            return "success"
        if outcome == "success" and header.get("task_id"):
            self.known.add(header["task_id"])
        self.put.add((outcome, header, unpack(payload)))
        return outcome

    def put_trajectories(self, headers: list[dict[str, Any]], payloads: list[bytes]) -> list[dict[str, str]]:
        return [{"outcome": self.put_trajectory(*each)} for each in zip(headers, payloads, strict=True)]

    def get_batch(self, batch_size: int | None, model_tag: str | None, consumer: str, wait: float = 0) -> Any:
        del batch_size, model_tag, wait
        if not self.batches:
            return None
        batch = self.batches.popleft()
        self.taken[batch["id"]] = consumer, batch
        return batch

    def ack(self, batch_id: str) -> None:
        self.taken.pop(batch_id, None)
        self.acked.add(batch_id)

    def release_consumer(self, consumer: str) -> None:
        held = [known for known, (holder, _) in self.taken.items() if holder == consumer]
        self.batches.extendleft(self.taken.pop(known)[1] for known in reversed(held))

    def is_empty(self, model_tag: str | None) -> bool:
        del model_tag
        return not self.batches and not self.taken

    def get_model_tags(self) -> list[str]:
        return ["default"]


class TrainPool:
    """A train batch pool."""

    def __init__(self) -> None:
        self.put = Signals()
        self.known: set[str] = set()
        self.batches: deque[dict[str, Any]] = deque()

    def put_batch(self, header: dict[str, Any], payload: bytes) -> bool:
        if header["id"] in self.known:
            return True
        self.known.add(header["id"])
        self.batches.append({"id": header["id"], "header": header, "payload": payload})
        self.put.add(header)
        return True

    def get_batch(self, model: str, consumer: str, wait: float = 0) -> Any:
        del model, consumer, wait
        return self.batches.popleft() if self.batches else None

    def ack(self, batch_id: str) -> None:
        pass

    def is_empty(self) -> bool:
        return not self.batches


class Weights:
    """A weight sync controller that blocks rollouts while `blocked` is set."""

    def __init__(self) -> None:
        self.version = 0
        self.asked = Signals()
        self._changed = threading.Condition()
        self._blocked = False

    def block(self, blocked: bool) -> None:
        with self._changed:
            self._blocked = blocked
            self._changed.notify_all()

    def check_rollout_service_status(self, model_tag: str) -> str:
        self.asked.add(model_tag)
        return "block" if self._blocked else "continue"

    def wait_rollout_service(self, model_tag: str, timeout_s: float) -> str:
        with self._changed:
            self.asked.add((model_tag, "waits"))
            return "continue" if self._changed.wait_for(lambda: not self._blocked, timeout_s) else "block"

    def rollout_service(self, model_tag: str, timeout_s: float) -> dict[str, Any]:
        status = self.check_rollout_service_status(model_tag)
        if status != "continue" and timeout_s > 0:
            status = self.wait_rollout_service(model_tag, timeout_s)
        return {"status": status, "version": self.version}

    def get_rollout_model_version(self, model_tag: str) -> int:
        del model_tag
        return self.version


class Tracker:
    """An activity tracker that remembers what it was told."""

    def __init__(self) -> None:
        self.errors, self.posts, self.modules, self.beats = Signals(), Signals(), Signals(), Signals()
        self.open: dict[str, tuple[str, str]] = {}
        self.history: list[tuple[str, str, str]] = []
        self.step, self._count = 0, 0

    def start(self, module: str, work: str, incarnation: str, token: str = "") -> str:
        self._count += 1
        token = token or f"token-{self._count}"
        self.open[token] = module, work
        self.history.append((module, work, incarnation))
        return token

    def end(self, token: str) -> None:
        self.open.pop(token, None)

    def beat(self, module: str, incarnation: str, doing: dict[str, str], following: str = "") -> None:
        self.beats.add((module, incarnation, doing))
        self.following = following

    def is_quiescent(self) -> bool:
        return not self.open

    def is_rollout_worker_quiescent(self) -> bool:
        return not self.open

    def wait_quiescent(self, timeout: float | None) -> bool:
        del timeout
        return not self.open

    def register_module(self, name: str, address: str, is_rollout_worker: bool) -> None:
        self.modules.add((name, address, is_rollout_worker))

    def check_module_liveness(self, timeout: float) -> bool:
        return timeout > 0

    def report_exception(self, module: str, work: str, error: dict[str, str], severity: str) -> str:
        self.errors.add((module, work, error, severity))
        return f"error-{len(self.errors.values)}"

    def get_error_health_status(self) -> dict[str, Any]:
        return {"status": "error" if self.errors.values else "healthy"}

    def get_running_status_summary(self) -> str:
        return ", ".join(f"{module}: {work}" for module, work in self.open.values())

    def set_training_step(self, step: int) -> None:
        self.step = step

    def get_training_step(self) -> int:
        return self.step

    def experiment_logger_post(self, backend: str, values: dict[str, Any]) -> None:
        self.posts.add((backend, values))


class Run:
    """The roles of a run, hosted as actors."""

    def __init__(self, cluster: LocalCluster, items: int = 4, repeat: int = 1, ttl: float = 1e6) -> None:
        data = {"num_samples": items, "batch_size": items, "repeat_item": repeat}
        self.loader = Loader(MockDataLoader(Config(data)), ttl=ttl)
        self.validation = Loader(MockDataLoader(Config(data), is_validate=True), route="validate", ttl=ttl)
        self.pool, self.train_pool, self.validator = Pool(), TrainPool(), Pool()
        self.weights, self.tracker = Weights(), Tracker()
        self.cluster = cluster
        self.resolver = ClusterResolver(cluster)
        self.server = ActorServer(cluster)
        for name, actor in {
            "data_loader": self.loader,
            "validate_dataloader": self.validation,
            "trajectory_pool": self.pool,
            "train_batch_pool": self.train_pool,
            "validator": self.validator,
            "weight_sync_controller": self.weights,
            "activity_tracker": self.tracker,
        }.items():
            self.server.register(name, actor, max_concurrency=16)
        self.server.serve_background()

    def handle(self, name: str) -> Any:
        return self.resolver.handle(name)

    def references(self) -> dict[str, Any]:
        """What set_module_references of a rollout worker takes."""
        return {
            "trajectory_pool": self.handle("trajectory_pool"),
            "dataloader": self.handle("data_loader"),
            "weight_sync_controller": self.handle("weight_sync_controller"),
            "validate_dataloader": self.handle("validate_dataloader"),
            "validator": self.handle("validator"),
        }


def jsonl(path: Any, items: list[Mapping[str, Any]], **options: Any) -> JsonlDataLoader:
    path.write_text("\n".join(json.dumps(item) for item in items))
    return JsonlDataLoader(Config({"data_path": str(path), "batch_size": len(items), **options}))


Answer = Callable[[dict[str, Any]], Any]


class Inference:
    """An inference service that speaks OpenAI's protocol; `answers`, statuses or bytes, are given first."""

    def __init__(self) -> None:
        self.requests = Signals()
        self.answers: deque[Any] = deque()
        self.headers: dict[str, str] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""

    def answer(self, path: str, request: dict[str, Any]) -> tuple[int, Any]:
        self.requests.add((path, request))
        assert self.gate.wait(PATIENCE)
        given = self.answers.popleft() if self.answers else None
        if isinstance(given, int):
            return given, {"error": {"message": f"status {given}", "type": "test"}}
        if given is not None:
            return 200, given
        if path.endswith("/chat/completions"):
            return 200, chat(content="hello")
        return 200, text(request["prompt"][::-1])


def text(response: str, **more: Any) -> dict[str, Any]:
    """A completion."""
    choice = {"index": 0, "text": response, "finish_reason": "stop", "logprobs": None, **more}
    return {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}


def chat(
    content: str | None = None, calls: list[tuple[str, str]] | None = None, **more: Any
) -> dict[str, Any]:
    """A completion of a conversation."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": f"call-{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls)
        ]
    reason = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason, **more.pop("choice", {})}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


@contextmanager
def inference() -> Iterator[Inference]:
    """Serve an inference service on this machine."""
    service = Inference()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = service.answer(self.path, request)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in service.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        service.gate.set()
        server.shutdown()
        server.server_close()


PROGRAM = """
import sys
from fray.rl import MockRolloutWorker

class Slow(MockRolloutWorker):
    def step(self, task):
        print("rolling out", task["index"], flush=True)
        sys.stdin.read()
"""


def killed_amid_a_task(folder: Path, address: str) -> None:
    """Run a worker in a process of its own, and kill it by SIGKILL as soon as it rolls a task out."""
    (folder / "slow.py").write_text(PROGRAM)
    main = (
        "from fray.rl import ActivityTrackerProxy; from fray.rl.config import Config; from slow import Slow\n"
        "from fray.rpc import FixedResolver\n"
        f"at = FixedResolver('{address}').handle\n"
        "worker = Slow(Config())\n"
        "worker.set_module_name('rollout_worker_1')\n"
        "worker.set_module_references(\n"
        "    at('trajectory_pool'), at('data_loader'), at('weight_sync_controller'))\n"
        "worker.set_activity_tracker(ActivityTrackerProxy(at('activity_tracker')))\n"
        "worker.run(); worker._thread.join()\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-c", main], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "rolling out 0\n"
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    process.stdout.close()
    process.stdin.close()
