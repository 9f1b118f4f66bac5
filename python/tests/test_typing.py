"""What type checkers find in programs that call actors: each line that is marked `# wrong`, and no other."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fray

DECLARED = """
from __future__ import annotations

from typing import Any, Generic, TypeVar, assert_type, overload

from fray.cluster import LocalCluster
from fray.rpc import ActorContext, ActorFuture, ActorHandle, ClusterResolver, RpcClient, method
from fray.v2 import Actor, ActorOptions, LocalClient, get_actor

T = TypeVar("T")


class Base:
    def reset(self, to: int) -> None: ...


class Counter(Base):
    size: int = 3

    @property
    def length(self) -> int:
        return 1

    @overload
    def either(self, x: int) -> int: ...
    @overload
    def either(self, x: str) -> str: ...
    def either(self, x: Any) -> Any: ...


    def __init__(self, start: int = 0) -> None:
        self.value = start

    def increment(self, by: int = 1) -> int:
        return by

    @method(idempotent=True)
    def read(self, *, exact: bool = False) -> str:
        return ""

    async def fetch(self, url: str) -> bytes:
        return b""

    def informed(self, ctx: ActorContext, x: int) -> int:
        return x

    @staticmethod
    def fixed(x: int) -> int:
        return x

    @classmethod
    def made(cls, x: int) -> int:
        return x

    def untyped(self, x, y=2):  # type: ignore[no-untyped-def]
        return x


class Box(Generic[T]):
    def __init__(self, value: T) -> None: ...

    def get(self) -> T: ...  # type: ignore[empty-body]


client = LocalClient()
counter = client.create_actor(Counter, 5, name="counter")
assert_type(counter, ActorHandle[Counter])
assert_type(client.create_actor_group(Counter, count=2).handles, list[ActorHandle[Counter]])
assert_type(get_actor("counter", Counter), ActorHandle[Counter])
assert_type(Actor(Counter).options(name="x").remote(4), ActorHandle[Counter])
looked_up: ActorHandle[Counter] = ClusterResolver(LocalCluster()).lookup("counter")
unknown: ActorHandle = counter
unknown.anything(1)
get_actor("other").anything.remote(1)
counter["name"](1)
assert_type((counter.name, counter.address), tuple[str, str])

ActorOptions(max_restart=3)  # wrong
ActorOptions(max_restarts="3")  # wrong
client.create_actor(Counter, name=3)  # wrong
client.create_actor(Counter, options={"a": 1})  # wrong
Actor(Counter).options(max_restart=3)  # wrong

assert_type(counter[Counter.increment](2), int)
assert_type(counter[Counter.increment].remote(by=2), ActorFuture[int])
assert_type(counter[Counter.increment].options(timeout=5)(by=2), int)
assert_type(counter[Counter.fetch]("x"), bytes)
assert_type(counter[Counter.fetch].remote("x").result(), bytes)
assert_type(looked_up[Counter.read](exact=True), str)
counter[Counter.reset](3)
counter[Counter.incremnt](2)  # wrong
counter[Counter.increment]("2")  # wrong
counter[Counter.increment].remote(bye=2)  # wrong
counter[Counter.read](True)  # wrong
counter[Box.get]()  # wrong
"""

ATTRIBUTES = """
assert_type(counter.increment(2), int)
assert_type(counter.increment.remote(by=2), ActorFuture[int])
assert_type(counter.increment.options(timeout=5)(by=2), int)
assert_type(counter.options(timeout=5).increment(), int)
assert_type(counter.fetch("x"), bytes)
assert_type(counter.read.remote(exact=True).result(), str)
assert_type(counter.informed(3), int)
assert_type(counter.fixed(3), int)
assert_type(counter.made(3), int)
assert_type(client.create_actor(Box[str], "x").get(), str)
assert_type(RpcClient(ClusterResolver(LocalCluster()), Counter).fetch("x"), ActorFuture[bytes])
counter.untyped(1)
counter.either(1)
counter.reset(1)
counter.incremnt(2)  # wrong
counter.options(timeout=5).incremnt(2)  # wrong
counter.increment("2")  # wrong
counter.increment.remote(bye=2)  # wrong
counter.read(True)  # wrong
counter.informed("3")  # wrong
counter.size()  # wrong
counter.length()  # wrong
RpcClient(ClusterResolver(LocalCluster()), Counter).incremnt()  # wrong
RpcClient(ClusterResolver(LocalCluster()), Counter).increment("2")  # wrong
"""

SOURCE = Path(fray.__file__).parent.parent


def wrong(text: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# wrong")}


def test_mypy(tmp_path: Path) -> None:
    text = DECLARED + ATTRIBUTES
    (tmp_path / "sample.py").write_text(text)
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\nplugins = fray.mypy_plugin\ncheck_untyped_defs = true\n"
        f"mypy_path = {SOURCE}\nexplicit_package_bases = true\nfollow_imports = silent\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", "mypy.ini", "sample.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^sample.py:(\d+): error: ", done.stdout, re.MULTILINE)
    assert {int(number) for number in found} == wrong(text), done.stdout + done.stderr
    assert 'Actor "Counter" has no method "incremnt"; maybe "increment"?' in done.stdout


@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None or shutil.which("node") is None,
    reason="pyright is not installed, or node, which it runs in",
)
def test_pyright(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(DECLARED)
    settings = {"include": ["sample.py"], "extraPaths": [str(SOURCE)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**settings, "reportMissingModuleSource": False}))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    found = {
        each["range"]["start"]["line"] + 1
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    }
    assert found == wrong(DECLARED), done.stdout
