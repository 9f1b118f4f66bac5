"""What the jobs of these tests run; it travels by value."""

from __future__ import annotations

from pathlib import Path


def by_value() -> None:
    """Have cloudpickle send the functions of this module by value."""
    import sys

    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def say(text: str) -> None:
    import sys

    print(text)
    print(f"err {text}", file=sys.stderr)


def check_compiled() -> None:
    """Raise AssertionError where fray would be compiled by each process."""
    import importlib.util
    from pathlib import Path

    import fray.rpc

    for module in (fray, fray.rpc):
        assert Path(importlib.util.cache_from_source(module.__file__ or "")).exists(), module


def fail_with_key() -> None:
    raise KeyError("boom")


def leave(code: int, how: str) -> None:
    import os
    import sys

    if how == "os":
        os._exit(code)
    sys.exit(code)


def count(path: str) -> int:
    """Add a line to a file, and return how many there are."""
    with open(path, "a") as file:  # noqa: PTH123
        file.write("x\n")
    return len(Path(path).read_text().splitlines())


def count_and_fail(path: str, code: int) -> None:
    count(path)
    leave(code, "sys")


def hold(started: str, gate: str) -> None:
    """Make one file, and wait for another."""
    import os
    import time

    Path(started).write_text(str(os.getpid()))
    while not Path(gate).exists():
        time.sleep(0.02)


def measure(data: bytes) -> None:
    print(len(data))


by_value()
