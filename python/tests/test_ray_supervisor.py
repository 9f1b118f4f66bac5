"""A supervisor of a job on Ray, without Ray: one run at a time, and a stop waits for it."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fray.cluster.ray import supervisor
from fray.cluster.ray.naming import supervisor_name
from fray.cluster.types import JobId


def test_ray_stop_of_a_supervisor_waits_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setattr(supervisor, "alone", lambda _: True)
    monkeypatch.setattr(supervisor.Supervisor, "_leave_unasked", lambda _: None)
    made = supervisor.Supervisor("test", "", supervisor_name(JobId("job")))
    began, gate = threading.Event(), threading.Event()
    attempts: list[str] = []

    def attempt(_: Any) -> None:
        attempts.append("began")
        began.set()
        gate.wait()
        attempts.append("ended")

    monkeypatch.setattr(made, "_attempt", attempt)
    job: Any = SimpleNamespace()
    runs = [threading.Thread(target=made.run, args=[job]) for _ in range(2)]
    for run in runs:
        run.start()
    assert began.wait()
    stop = threading.Thread(target=made.stop, args=[1, 0.0])
    stop.start()
    stop.join(0.2)
    assert stop.is_alive()
    assert attempts == ["began"]
    gate.set()
    for thread in [stop, *runs]:
        thread.join()
    assert attempts == ["began", "ended"]
