from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fray import _pickling
from fray.cluster import PickleError
from fray.cluster.types import PythonCall

LOCK = threading.Lock()


class Model:
    def __init__(self) -> None:
        self.layers = [{"weights": 1}, {"lock": threading.Lock()}]

    def train(self) -> None:
        pass


class Slotted:
    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()


def add(a: object, b: object = 0) -> list[object]:
    return [a, b]


def by_value(function: Callable[..., object]) -> Callable[..., object]:
    """Make cloudpickle take a function for one of the main program."""
    function.__module__ = "__main__"
    return function


def _uses_global() -> object:
    return LOCK


def closing_over() -> Callable[[], object]:
    model = Model()
    return by_value(lambda: model)


def with_default() -> Callable[..., object]:
    def function(lock: object = threading.Lock()) -> object:
        return lock

    return by_value(function)


def with_keyword_default() -> Callable[..., object]:
    def function(*, lock: object = threading.Lock()) -> object:
        return lock

    return by_value(function)


def test_a_callable_comes_back() -> None:
    call = _pickling.load(_pickling.dump(PythonCall(add, (1,), {"b": 2})))
    assert call.function(*call.args, **call.kwargs) == [1, 2]


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (PythonCall(add, (1, threading.Lock())), "args[1], a lock,"),
        (PythonCall(add, (), {"b": [0, threading.Lock()]}), "kwargs['b'][1], a lock,"),
        (PythonCall(closing_over()), ", which closes over model.layers[1]['lock'], a lock,"),
        (PythonCall(by_value(_uses_global)), ", which uses the global LOCK, a lock,"),
        (PythonCall(with_default()), ", whose default is [0], a lock,"),
        (PythonCall(with_keyword_default()), ", whose default of lock is, a lock,"),
        (PythonCall(Model().train), "Model.train.__self__.layers[1]['lock'], a lock,"),
        (PythonCall(functools.partial(add, threading.Lock())), ".args[0], a lock,"),
        (PythonCall(functools.partial(add, b=threading.Lock())), ".keywords['b'], a lock,"),
        (PythonCall(add, (Slotted(),)), "args[0].lock, a lock,"),
    ],
)
def test_errors_name_what_cannot_be_pickled(call: PythonCall, path: str) -> None:
    with pytest.raises(PickleError) as caught:
        _pickling.dump(call)
    (error,) = caught.value.fields
    assert error.field == "entrypoint.callable"
    assert path in error.message
    assert "cannot pickle '_thread.lock' object" in error.message


def test_what_contains_itself_is_no_problem() -> None:
    endless: list[object] = [threading.Lock()]
    endless.insert(0, endless)
    with pytest.raises(PickleError, match=r"args\[0\]\[1\], a lock"):
        _pickling.dump(PythonCall(add, (endless,)))


def run(data: bytes | None, directory: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    file = directory / "callable"
    if data is not None:
        file.write_bytes(data)
        environ["FRAY_CALLABLE"] = str(file)
    words = [sys.executable, "-m", "fray._callable"]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def _report() -> None:
    print("it ran")


def _raise() -> None:
    raise ValueError("no such luck")


def test_a_callable_is_run(tmp_path: Path) -> None:
    done = run(_pickling.dump(PythonCall(by_value(_report))), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "it ran\n", "")


def test_what_it_raises_is_shown_from_its_own_code_on(tmp_path: Path) -> None:
    done = run(_pickling.dump(PythonCall(by_value(_raise))), tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: no such luck\n")
    assert "_callable.py" not in done.stderr


@pytest.mark.parametrize(
    ("code", "want", "message"), [(None, 0, ""), (3, 3, ""), ("it is late", 1, "it is late\n")]
)
def test_system_exit(tmp_path: Path, code: object, want: int, message: str) -> None:
    done = run(_pickling.dump(PythonCall(sys.exit, (code,))), tmp_path)
    assert (done.returncode, done.stderr) == (want, message)


def with_head(**changed: str) -> bytes:
    head, _, body = _pickling.dump(PythonCall(add, (1,))).partition(b"\n")
    return json.dumps({**json.loads(head), **changed}).encode() + b"\n" + body


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "FRAY_CALLABLE is not set"),
        (b"rubbish", "it is no callable that this version of fray knows"),
        (b"[1]\n", "it is no callable that this version of fray knows"),
        (with_head(format="fray-callable/9"), "it is no callable that this version of fray knows"),
        (with_head(python="3.2"), "test_pickling:add was pickled by Python 3.2, and this is Python 3."),
        (with_head()[:-3], "the callable cannot be run: it cannot be unpickled, see above: "),
    ],
)
def test_errors_of_what_cannot_be_run(tmp_path: Path, data: bytes | None, message: str) -> None:
    done = run(data, tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_module_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "only_here.py"
    module.write_text("def work(): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # type: ignore[import-not-found]

    data = _pickling.dump(PythonCall(only_here.work))
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path)])
    done = run(data, tmp_path)
    assert done.returncode == 2
    assert "only_here:work needs the module only_here, which is not here" in done.stderr


def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAY_CALLABLE", str(tmp_path / "nothing"))
    done = run(None, tmp_path)
    assert done.returncode == 2
    assert "FRAY_CALLABLE cannot be read" in done.stderr
