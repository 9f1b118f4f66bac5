"""`python -m fray.host`: as a process, against agents and controllers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fray import _host_class, _host_run, _termination, host
from fray._host_run import Hosting
from fray.cluster import TerminationCause
from fray.rpc import ActorHandle, FixedResolver, errors
from ports import listen
from waiting import eventually

PATIENCE = 300.0  # seconds

MODULE = """
import asyncio, time
from fray.rpc import method
from pathlib import Path

class Counter:
    def __init__(self, start=0, gate="", problem=""):
        while gate and not Path(gate).exists():
            time.sleep(0.01)
        if problem:
            raise ValueError(problem) from KeyError("the cause")
        self.value = start

    def increment(self, by=1):
        self.value += by
        return self.value

    def wait_for(self, file):
        while not Path(file).exists():
            time.sleep(0.01)
        return self.value

    class Inner:
        def hello(self):
            return "hello"

class Informed:
    def __init__(self, ctx, greeting):
        self.said = f"{greeting} {ctx.namespace}"

    def say(self):
        return self.said

def make_counter(start):
    return Counter(start)

class Grouped(Counter):
    @method(concurrency_group="io")
    def read(self):
        return "read"

number = 7
"""

LISTENING = """
import sys
import threading

class Elsewhere:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            found.append(name)

found = []
sys.meta_path.insert(0, Elsewhere())
for thread in threading.enumerate():
    if thread.name == "fray-connect":
        thread.join()
raise OSError(f"imported by other threads: {found}")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    (directory / "rl").mkdir(parents=True)
    (directory / "counting.py").write_text(MODULE)
    (directory / "broken.py").write_text("import no_such_module")
    (directory / "misspelt.py").write_text("class Counter\n    pass\n")
    (directory / "raising.py").write_text("raise OSError('the disk is gone')")
    (directory / "listening.py").write_text(LISTENING)
    (directory / "rl" / "__init__.py").touch()
    (directory / "rl" / "curriculum.py").write_text("class Curriculum: pass")
    return directory


class Host:
    """A host process."""

    def __init__(self, project: Path, words: list[str], environ: dict[str, str]) -> None:
        with listen() as free:
            self.port = free.getsockname()[1]
        path = os.pathsep.join([str(project), *sys.path])
        self.environ = {**os.environ, "PYTHONPATH": path, "FRAY_PORT_ACTOR": str(self.port), **environ}
        self.log = project / f"log-{self.port}"
        self.termination = project / f"end-{self.port}"
        self.environ[_termination.VARIABLE] = str(self.termination)
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fray.host", *words],
                env=self.environ,
                cwd=project,
                stdout=output,
                stderr=output,
            )

    def actor(self, name: str = "counter") -> ActorHandle:
        return FixedResolver(f"127.0.0.1:{self.port}").wait_for_actor(name, PATIENCE)

    def ready(self) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=PATIENCE) as page:
                return int(page.status)
        except urllib.error.HTTPError as err:
            return err.code
        except OSError:
            return 0

    def ended(self) -> tuple[int, str]:
        return self.process.wait(PATIENCE), self.log.read_text()


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Host]]:
    started: list[Host] = []

    def start(*words: str, **environ: str) -> Host:
        started.append(Host(project, list(words), environ))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


# The class


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("counting.Counter", '"counting.Counter" is no class path: write module:Class'),
        (":Counter", "is no class path"),
        (".counting:Counter", "the module's name is relative"),
        ("countin:Counter", 'there is no module "countin"; did you mean counting?; it was searched for in '),
        ("rl.curiculum:Curriculum", 'there is no module "rl.curiculum"; did you mean rl.curriculum?'),
        ("lr.curriculum:Curriculum", 'there is no module "lr"'),
        ("broken:Counter", 'broken needs the module "no_such_module", which is not here'),
        ("counting:Conter", 'module "counting" has no class "Conter"; did you mean Counter'),
        ("counting:counter", 'has no class "counter"; did you mean Counter'),
        ("counting:Counter.Iner", '"counting:Counter" has no class "Iner"; did you mean Inner?'),
        ("counting:number", '"counting:number" is a int, which makes no actors'),
    ],
)
def test_a_path_that_names_no_class(
    project: Path, monkeypatch: pytest.MonkeyPatch, path: str, want: str
) -> None:
    monkeypatch.syspath_prepend(str(project))
    with pytest.raises(_host_class.ClassPathError) as caught:
        _host_class.find(path)
    assert want in str(caught.value)
    assert "no module" not in want or path.startswith("rl") or str(project) in str(caught.value)


def test_what_a_module_raises_is_reported_unchanged(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(project))
    with pytest.raises(OSError, match="the disk is gone"):
        _host_class.find("raising:Counter")
    assert _host_class.find("counting:make_counter")(3).value == 3
    assert _host_class.find("counting:Counter.Inner")().hello() == "hello"


# The variables


def test_settings() -> None:
    environ = {"FRAY_ACTOR_CLASS": "counting:HTTPCounter"}
    assert host.settings([], environ) == ("counting:HTTPCounter", Hosting(("http_counter",)))
    assert host.settings(["other:Class"], environ)[0] == "other:Class"
    environ |= {
        "FRAY_ACTOR_NAMES": '["a", "a_0"]',
        "FRAY_ACTOR_OPTIONS": '{"max_concurrency": 4, "allow_pickle": true}',
    }
    assert host.settings([], environ)[1] == Hosting(("a", "a_0"), 4, True)


@pytest.mark.parametrize(
    ("tasks", "task", "want"),
    [
        ("", "", ("a", "a_0")),
        ("1", "0", ("a", "a_0")),
        ("2", "0", ("a", "a_0", "a_0/0")),
        ("4", "3", ("a_0/3",)),
    ],
)
def test_names_of_the_tasks_of_a_replica(tasks: str, task: str, want: tuple[str, ...]) -> None:
    environ = {"FRAY_ACTOR_NAMES": '["a", "a_0"]', "FRAY_NUM_TASKS": tasks, "FRAY_TASK_INDEX": task}
    assert host.settings(["counting:Counter"], environ)[1].names == want


@pytest.mark.parametrize(
    ("arguments", "environ", "want"),
    [
        ([], {}, "there is no class to host"),
        (["a:B", "c:D"], {}, "one class is expected, got 2"),
        (["a:B"], {"FRAY_ACTOR_NAMES": "a"}, "FRAY_ACTOR_NAMES is no JSON"),
        (["a:B"], {"FRAY_ACTOR_NAMES": '{"a": 1}'}, "FRAY_ACTOR_NAMES is no JSON list"),
        (["a:B"], {"FRAY_ACTOR_NAMES": '["a", ""]'}, "something that is no name"),
        (["a:B"], {"FRAY_NUM_TASKS": "two"}, "FRAY_NUM_TASKS is 'two', want a number"),
        (["a:B"], {"FRAY_ACTOR_OPTIONS": "[]"}, "FRAY_ACTOR_OPTIONS is no JSON object"),
        (
            ["a:B"],
            {"FRAY_ACTOR_OPTIONS": '{"threads": 1}'},
            '"threads", which is none of max_concurrency, allow_pickle',
        ),
        (["a:B"], {"FRAY_ACTOR_OPTIONS": '{"max_concurrency": true}'}, "max_concurrency is True, want int"),
        (["a:B"], {"FRAY_ACTOR_ARGS": "[1]"}, "FRAY_ACTOR_ARGS is no JSON object"),
    ],
)
def test_invalid_variables(
    arguments: list[str], environ: dict[str, str], want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert host.main(arguments, environ) == 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert want in capsys.readouterr().err


# The process


def test_it_hosts_drains_and_exits(start: Callable[..., Host], tmp_path: Path) -> None:
    running = start(
        "counting:Counter", FRAY_ACTOR_ARGS='{"start": 5}', FRAY_ACTOR_NAMES='["counter", "counter_0"]'
    )
    counter = running.actor()
    assert [counter.increment(), running.actor("counter_0").increment(4)] == [6, 10]  # one object
    eventually(lambda: running.ready() == 200, PATIENCE)
    call = counter.wait_for.remote(str(tmp_path / "gate"))
    eventually(lambda: _pending(running.port) == 1, PATIENCE)
    running.process.send_signal(signal.SIGTERM)
    eventually(lambda: running.ready() == 0, PATIENCE)  # it accepts no connections any more
    assert running.process.poll() is None
    (tmp_path / "gate").touch()
    assert call.result(PATIENCE) == 10
    assert running.ended()[0] == 0


def _pending(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
        lines = page.read().decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.startswith("fray_actor_calls_pending{"))


def test_it_is_asked_to_stop_while_it_constructs(start: Callable[..., Host], tmp_path: Path) -> None:
    running = start("counting:Counter", FRAY_ACTOR_ARGS=json.dumps({"gate": str(tmp_path / "never")}))
    eventually(lambda: b"fray.host" in Path(f"/proc/{running.process.pid}/cmdline").read_bytes(), PATIENCE)
    status = None
    while status is None:  # until it has got so far that it takes the signal its own way
        running.process.send_signal(signal.SIGTERM)
        status = running.process.poll()
    assert status in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("words", "environ", "want"),
    [
        (
            "counting:Counter",
            {"FRAY_ACTOR_ARGS": '{"problem": "no such lesson"}'},
            ("ValueError", "no such lesson", "KeyError: 'the cause'"),
        ),
        ("counting:Counter", {"FRAY_ACTOR_ARGS": '{"strat": 1}'}, ("TypeError", "'strat'", "strat")),
        (
            "counting:Conter",
            {},
            ("fray._host_class.ClassPathError", "did you mean Counter", ""),
        ),
        ("raising:Counter", {}, ("OSError", "the disk is gone", "raising.py")),
        ("broken:Counter", {}, ("fray._host_class.ClassPathError", "needs the module", "")),
        ("misspelt:Counter", {}, ("SyntaxError", "expected ':'", "misspelt.py")),
    ],
)
def test_an_actor_that_cannot_be_made(
    start: Callable[..., Host], words: str, environ: dict[str, str], want: tuple[str, str, str]
) -> None:
    host = start(words, **environ)
    status, log = host.ended()
    assert status == _host_run.CONSTRUCTION_FAILED == 77
    found = _termination.read(host.termination)
    assert found is not None, log
    imported = want[0] in ("ValueError", "TypeError", "OSError")
    assert found.cause is (TerminationCause.ACTOR_UNMADE if imported else TerminationCause.ACTOR_INVALID)
    assert found.cause.permanent is not imported
    kind, message, trace = found.type, found.message, found.trace
    assert kind == want[0]
    assert want[1] in message
    assert want[2] in trace
    assert "host.py" not in trace
    last = log.splitlines()[-1]  # which is why the attempt ended
    if kind.startswith("fray."):
        assert last == f"fray: the actor could not be constructed: {message}"
        assert "Error" not in log
    else:
        assert last.startswith(f"{kind}: ")


@pytest.mark.parametrize("spec", ["", "local", "fray://127.0.0.1:9", "no cluster"])
def test_no_other_thread_imports_beside_the_actor(start: Callable[..., Host], spec: str) -> None:
    # Python fails an import where two threads import a package and one of its modules at the same time.
    host = start("listening:Counter", FRAY_CLUSTER_SPEC=spec)
    _, log = host.ended()
    found = _termination.read(host.termination)
    assert found is not None, log
    assert found.message == "imported by other threads: []"


def test_a_long_traceback_fits_into_what_is_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_termination.VARIABLE, str(tmp_path / "end"))

    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("deep\ndown")
        again(depth - 1) if depth % 2 else fall(depth - 1)

    def again(depth: int) -> None:  # repeated lines would be folded
        fall(depth)

    with pytest.raises(ValueError, match="deep") as caught:
        fall(30)
    _host_run.report(caught.value)
    tail = capsys.readouterr().err.splitlines()[-20:]  # of an agent
    assert tail[:2] == [
        "fray: the actor could not be constructed: ValueError: deep",
        "Traceback (most recent call last):",
    ]
    assert tail[-2:] == ["ValueError: deep", "down"]
    found = _termination.read(tmp_path / "end")
    assert found is not None
    assert (found.type, found.message) == ("ValueError", "deep\ndown")
    assert found.trace.startswith("Traceback (most recent call last):")
    assert found.trace.endswith("ValueError: deep\ndown\n")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"cause": "boredom", "message": "", "type": "", "trace": ""}']
)
def test_what_is_no_record_counts_as_none(tmp_path: Path, content: str) -> None:
    assert _termination.read(tmp_path / "end") is None
    (tmp_path / "end").write_text(content)
    assert _termination.read(tmp_path / "end") is None


def test_a_constructor_gets_its_context(start: Callable[..., Host]) -> None:
    running = start("counting:Informed", FRAY_ACTOR_ARGS='{"greeting": "hello"}')
    assert running.actor("informed").say().startswith("hello ")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("{}", 'counting.Grouped.read is of group "io", which concurrency_groups lacks'),
        ('{"concurrency_groups": {"oi": 2}}', "concurrency_groups lacks; it has oi"),
        ('{"concurrency_groups": {"io": 0}}', "max_concurrency and concurrency_groups are 1 at least"),
    ],
)
def test_an_actor_that_can_never_be_registered(
    start: Callable[..., Host], options: str, problem: str
) -> None:
    host = start("counting:Grouped", FRAY_ACTOR_OPTIONS=options)
    status, log = host.ended()
    found = _termination.read(host.termination)
    assert found is not None, log
    assert (status, found.cause) == (77, TerminationCause.ACTOR_INVALID)
    assert problem in found.message
    assert log.splitlines()[-1] == f"fray: {found.message}"


def test_concurrency_groups(start: Callable[..., Host], tmp_path: Path) -> None:
    grouped = start("counting:Grouped", FRAY_ACTOR_OPTIONS='{"concurrency_groups": {"io": 2}}').actor(
        "grouped"
    )
    waiting = grouped.wait_for.remote(str(tmp_path / "gate"))
    assert grouped.read() == "read", "it waited for a call of another group"
    (tmp_path / "gate").touch()
    assert waiting.result(PATIENCE) == 0


def test_options(start: Callable[..., Host], tmp_path: Path) -> None:
    running = start("counting:Counter", FRAY_ACTOR_OPTIONS='{"max_concurrency": 2}')
    waiting = running.actor().wait_for.remote(str(tmp_path / "gate"))
    assert running.actor().increment() == 1  # beside the other
    (tmp_path / "gate").touch()
    assert waiting.result(PATIENCE) in (0, 1)


# The cluster


def test_errors_have_the_texts_of_the_protocol(start: Callable[..., Host]) -> None:
    counter = start("counting:Counter").actor()
    with pytest.raises(errors.UnknownMethodError, match='no method "incremen"'):
        counter.incremen()
