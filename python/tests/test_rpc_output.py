"""What actors of tasks write: with their names where a process hosts several."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import talking
from fray.cluster import JobId, LocalCluster
from fray.rpc import ClusterResolver
from fray.rpc._serving import output as _output
from fray.rpc._transport import call_chain as _call_chain
from fray.rpc.errors import ApplicationError
from jobs import call

PATIENCE = 300.0  # seconds


@pytest.fixture
def hosted(capfd: pytest.CaptureFixture[str]) -> Any:
    with LocalCluster(use_processes=True) as cluster:

        def host(*names: str) -> tuple[JobId, Callable[[str], Any]]:
            job_id = cluster.launch(call(talking.host, *names))
            resolver = ClusterResolver(cluster)
            return job_id, lambda name: resolver.wait_for_actor(name, PATIENCE)

        def ended(job_id: JobId) -> list[str]:
            cluster.terminate(job_id)
            cluster.wait(job_id, timeout=PATIENCE)
            return list(capfd.readouterr().out.splitlines())

        yield host, ended


def test_lines_have_the_name_of_their_actor(hosted: Any) -> None:
    host, ended = hosted
    job_id, actor = host("alice", "bob", "async")
    actor("alice").say("one")
    actor("bob").say("two")
    actor("async").say("three")
    with pytest.raises(ApplicationError):
        actor("bob").boom()
    lines = ended(job_id)
    assert "the process says hello" in lines
    assert lines.count("[async] it says three again") == 1
    assert lines.count("[async] a task says three") == 1
    for name, text in (("alice", "one"), ("bob", "two")):
        for said in (f"it says {text}", f"logged {text}", "two", "lines more", "no end"):
            assert lines.count(f"[{name}] {said}") == 1, (said, lines)
    assert "[bob] bob.boom raised an exception:" in lines
    assert "[bob] ValueError: no such lesson" in lines
    assert not any(line.startswith("[alice] ") and "lesson" in line for line in lines)


def test_one_actor_writes_as_it_is(hosted: Any) -> None:
    host, ended = hosted
    job_id, actor = host("alice")
    actor("alice").say("one")
    with pytest.raises(ApplicationError):
        actor("alice").boom()
    lines = ended(job_id)
    assert {"it says one", "logged one", "two", "lines more"} <= set(lines)
    assert {"no endalice.boom raised an exception:", "ValueError: no such lesson"} <= set(lines)
    assert not any(line.startswith("[") for line in lines)


class Call:
    tag = "a"
    task: ClassVar[None] = None


def test_lines_of_several_writers_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    tagged: Any = _output._Tagged(out)
    monkeypatch.setattr(_call_chain.here, "call", Call())
    assert tagged.write("begins ") == 7
    other = Call()
    other.tag = "b"
    monkeypatch.setattr(_call_chain.here, "call", other)
    tagged.writelines(["b one\n", "\n", "b"])
    monkeypatch.setattr(_call_chain.here, "call", None)
    tagged.write("no call\n")
    monkeypatch.setattr(_call_chain.here, "call", Call())
    tagged.write("and ends\n")
    tagged.write("x" * (_output._LONGEST + 1))
    tagged.end()
    long = "x" * (_output._LONGEST + 1)
    assert out.getvalue() == f"[b] b one\n[b] \nno call\n[a] begins and ends\n[a] {long}\n[b] b\n"


def test_failures_that_repeat_are_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("fray.rpc._serving.output.time.monotonic", lambda: now[0])
    reports = _output.Reports()
    for at in (0.0, 0.1, 0.9, 1.1, 1.2):
        now[0] = at
        reports.raised("a", "m", "Traceback\nValueError: x\n")
    reports.raised("a", "other", "Traceback")
    texts = [record.getMessage() for record in caplog.records if record.name == "fray.actor"]
    assert [text.partition("\n")[0] for text in texts] == [
        "a.m raised an exception:",
        "a.m raised an exception (2 more of its failures are not shown):",
        "a.other raised an exception:",
    ]


def test_outside_of_tasks_nothing_is_changed() -> None:
    assert not _output.in_task()
