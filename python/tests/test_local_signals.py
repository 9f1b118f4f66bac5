"""Handlers of signals that raise while the main thread uses a LocalCluster."""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import multiprocessing
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import fray.cluster.local
import fray.v2
from fray.cluster import Entrypoint, JobId, JobRequest, LocalCluster, ReservationConfig, ResourceConfig
from fray.v2 import LocalClient

PATIENCE = 300.0  # seconds
_PLACES = {"jobs": 100, "reservations": 20, "actors": 50}
"""How many are interrupted at least: a test that finds fewer has lost its way."""
_CONDITIONS = ("__enter__", "__exit__", "wait", "wait_for", "notify", "notify_all", "_is_owned")


class Everywhere:
    """Interrupts each function of a LocalCluster and of its actors in turn where CPython looks for signals.

    What a profiler raises comes where what a handler raises does: where a function begins, and out of a call
    into C that has returned.
    """

    def __init__(self) -> None:
        local = Path(fray.cluster.local.__file__).parent
        self.files = {str(each) for each in local.glob("*.py")}
        self.files |= {
            str(Path(fray.v2.__file__).parent / "_local.py"),
            str(local.parent.parent / "_locks.py"),
        }
        self.places: set[tuple[str, str, int]] = set()
        self.last: object = None
        self.raised = False

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        mine = code.co_filename in self.files
        if event not in ("call", "c_return") or not (
            mine or (code.co_filename == threading.__file__ and code.co_name in _CONDITIONS)
        ):
            return
        place = code.co_filename, code.co_qualname, -1 if event == "call" else frame.f_lasti
        if place not in self.places and not self.raised:  # a handler raises once
            self.places.add(place)
            self.raised = True
            self.last = place, frame.f_lineno
            raise KeyboardInterrupt


class Note:
    def add(self, n: int) -> int:
        return n + 1


def _work() -> None:
    pass


def _answered(use: Callable[[], None]) -> None:
    """Use the cluster from another thread, in time."""
    done: list[bool] = []

    def uses() -> None:
        use()
        done.append(True)

    other = threading.Thread(target=uses, daemon=True)
    other.start()
    other.join(PATIENCE)
    assert done, "the other thread waits for a lock"


def _interrupted(what: str) -> None:
    faulthandler.dump_traceback_later(8 * PATIENCE, exit=True)
    numbers = itertools.count()
    client = LocalClient()
    cluster = client.cluster
    assert isinstance(cluster, LocalCluster)

    def launched() -> JobId:
        return cluster.launch(JobRequest(f"job-{next(numbers)}", Entrypoint.from_callable(_work)))

    def jobs() -> None:
        job = launched()
        cluster.poll(job)
        cluster.wait(job, timeout=PATIENCE)
        cluster.list_jobs()
        cluster.terminate(launched())

    def reservations() -> None:
        config = ReservationConfig(ResourceConfig(), ResourceConfig(), name=f"r-{next(numbers)}")
        held = cluster.create_reservation(config)
        cluster.get_reservation(held)
        cluster.release_reservation(held)

    def actors() -> None:
        name = f"note-{next(numbers)}"
        assert client.create_actor(Note, name=name).add(1) == 2
        client.actor_status(name)
        client.delete_actor(name)

    use = {"jobs": jobs, "reservations": reservations, "actors": actors}[what]
    interrupter = Everywhere()
    unseen = 0
    while unseen < 2:
        before = len(interrupter.places)
        print(interrupter.last, flush=True)  # which shows when the test fails
        interrupter.raised = False
        sys.setprofile(interrupter.profile)
        with contextlib.suppress(KeyboardInterrupt, Exception):
            use()
        sys.setprofile(None)
        _answered(use)
        unseen = 0 if len(interrupter.places) > before else unseen + 1
    print(len(interrupter.places), "places of", what, flush=True)

    assert len(interrupter.places) > _PLACES[what], interrupter.places


@pytest.mark.parametrize("what", _PLACES)
def test_an_interruption_anywhere_leaves_no_lock_held(what: str) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_interrupted, args=[what])
    child.start()
    child.join(8 * PATIENCE)  # on a machine that is busy
    child.kill()
    child.join()
    assert child.exitcode == 0
