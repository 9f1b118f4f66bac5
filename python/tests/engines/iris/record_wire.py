"""Records what a real Iris answers, for the tests that replay it without Iris: python record_wire.py FILE.

It is run with a Python that has marin-iris of the release that is recorded.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fray.cluster import ClusterError, Entrypoint, JobRequest, ResourceConfig
from fray.cluster.iris import IrisCluster
from fray.cluster.iris.connection import Connection
from fray.v2.iris_backend import FrayIrisClient
from iris_process import Iris

_SHORTENED = ("bundleBlob",)


class Recorder:
    """Keeps the last call of each step."""

    def __init__(self) -> None:
        self.calls: dict[str, list[dict[str, Any]]] = {}
        self.step = ""
        self.last: tuple[str, Any] = ("", {})
        self._answer = Connection._answer
        self._once = Connection.once
        recorder = self

        def once(connection: Connection, path: str, body: Any, seconds: float = 60.0) -> Any:
            recorder.last = (path, body)
            return recorder._once(connection, path, body, seconds)

        def answer(connection: Connection, path: str, status: int, data: bytes) -> Any:
            recorder.note(path, status, data)
            return recorder._answer(connection, path, status, data)

        Connection.once = once  # type: ignore[method-assign,assignment]
        Connection._answer = answer  # type: ignore[method-assign,assignment]

    def note(self, path: str, status: int, data: bytes) -> None:
        """Keep a call."""
        if not self.step or self.last[0] != path:
            return
        try:
            response = json.loads(data)
        except ValueError:
            response = data.decode()
        request = {key: value for key, value in self.last[1].items() if key not in _SHORTENED}
        call = {"path": path, "request": request, "status": status, "response": response}
        calls = self.calls.setdefault(self.step, [])
        calls[:] = [each for each in calls if (each["path"], each["request"]) != (path, request)]
        calls.append(call)


def main(file: str) -> None:
    """Record."""
    home = Path(tempfile.mkdtemp())
    os.environ.update(IRIS_USER="alice", XDG_STATE_HOME=str(home))
    os.chdir(home)
    iris, recorder = Iris(home), Recorder()
    cluster = IrisCluster(iris.url, user="alice")

    def shell(script: str) -> Entrypoint:
        return Entrypoint.from_command(["bash", "-c", script])

    def step(name: str, request: JobRequest) -> str:
        recorder.step = name
        return cluster.launch(request)

    failed = step("failed", JobRequest("failed", shell("echo before; exit 7"), max_retries_failure=1))
    cluster.wait(failed)  # type: ignore[call-overload]
    step("succeeded", JobRequest("succeeded", shell("echo fine")))
    cluster.wait("/alice/succeeded")  # type: ignore[call-overload]
    cluster.monitor("/alice/succeeded")  # type: ignore[arg-type]
    step(
        "gang",
        JobRequest("gang", shell("sleep 600"), ResourceConfig.with_tpu("v4-16"), max_retries_preemption=0),
    )
    while len([t for t in cluster.poll("/alice/gang").tasks if t.state == "running"]) < 2:  # type: ignore[arg-type]
        time.sleep(0.1)
    try:
        cluster.launch(JobRequest("gang", shell("true")))
    except ClusterError as err:
        print(err)
    recorder.step = ""
    iris.preempt("/alice/gang/0")
    recorder.step = "preempted"
    cluster.wait("/alice/gang")  # type: ignore[call-overload]
    machine = ResourceConfig(cpu=16, preemptible=False)
    for i in range(2):
        recorder.step = ""
        cluster.launch(JobRequest(f"filler-{i}", shell("sleep 600"), machine))
    step("pending", JobRequest("pending", shell("true"), machine))
    while "cpu" not in cluster.poll("/alice/pending").reason.lower():  # type: ignore[arg-type]
        time.sleep(0.1)
    cluster.terminate("/alice/pending")  # type: ignore[arg-type]
    recorder.step = "stopped"
    cluster.wait("/alice/pending")  # type: ignore[call-overload]
    recorder.step = ""
    for i in range(2):
        cluster.terminate(f"/alice/filler-{i}")  # type: ignore[arg-type]
    recorder.step = "unknown"
    try:
        cluster.poll("/alice/unknown")  # type: ignore[arg-type]
    except ClusterError as err:
        print(err)

    class Counter:
        def add(self) -> int:
            return 1

    client = FrayIrisClient(iris.url)
    client.cluster = cluster
    recorder.step = ""
    client.create_actor(Counter, name="counter").add()
    recorder.step = "actor"
    cluster.metadata.lookup("counter")
    cluster.list_jobs()
    recorder.step = ""
    client.shutdown()
    iris.close()
    text = json.dumps({"version": iris.version, "steps": recorder.calls}, indent=1)
    text = re.sub(r'"workdirFiles": \{[^}]*\}', '"workdirFiles": {}', text)  # with a private key
    text = re.sub(r'("FRAY_IRIS_SETUP": )"(?:[^"\\]|\\.)*"', r'\1""', text)
    Path(file).write_text(text + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main(str(Path(sys.argv[1]).absolute()))
    os._exit(0)
