"""What calls of created actors carry: values as they are, and exceptions of their own classes."""

from __future__ import annotations

import datetime
import pickle
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from controller import TOKEN, Controller
from fray.cluster import LocalCluster
from fray.rpc import ActorServer, ClusterResolver
from fray.rpc.errors import ApplicationError, EncodingError, RemoteTraceback
from fray.v2 import ActorHandle, Client, FrayClient, LocalClient
from fray.v2.client import _ClusterClient
from identities import make_identity
from test_v2_actors import Elsewhere
from valued import (
    Color,
    Echo,
    FileLostError,
    FilterOp,
    KeepingError,
    LessonError,
    Level,
    MapOp,
    Own,
    PhysicalOp,
    Point,
    Settings,
    VanishingError,
    ZephyrWorker,
)

everywhere = pytest.mark.parametrize("client", ["threads", "processes", "fray"], indirect=True)


@pytest.fixture
def client(
    request: pytest.FixtureRequest,
    serve: Callable[..., Controller],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Client]:
    kind = getattr(request, "param", "threads")
    if kind == "threads":
        with LocalClient() as local:
            yield local
    elif kind == "processes":
        with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as elsewhere:
            yield elsewhere
    else:
        monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
        monkeypatch.setenv("FRAY_ACTOR_IDENTITY", identity := make_identity(tmp_path, "rl"))
        controller = serve(runs=True)
        controller.identities["rl"] = identity
        with FrayClient(f"fray://{controller.address}?namespace=rl") as remote:
            yield remote


@pytest.fixture
def echo(client: Client) -> ActorHandle:
    return client.create_actor(Echo, name="echo")


@dataclass
class Here:
    """Of this module, which the processes of actors cannot import by this name."""

    value: int


Here.__module__ = "__main__"  # as classes of a program are

VALUES = [
    (1, 2),
    [(1, [2, (3,)])],
    {"deep": [{"er": (1,)}]},
    {1, 2},
    frozenset({"a"}),
    {(1, 2): "by a tuple"},
    {1.5: "by a float"},
    Settings("run", (0.1, 0.2), {"color": Color.RED}),
    Color.RED,
    Level.HIGH,
    Point(1, 2),
    Own([Point(3, 4)]),
    Here(5),
    OrderedDict(b=1, a=2),
    1 + 2j,
    2**70,
    bytearray(b"abc"),
    datetime.date(2026, 1, 2),
    datetime.datetime(2026, 1, 2, 3, 4),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    np.float64(1.5),
    np.float32(1.5),
    range(3),
    LessonError,
    None,
    True,
    [1, 2.5, "text", b"bytes", {"a": 1}],
    datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
]


@everywhere
def test_values_arrive_as_they_are(echo: ActorHandle) -> None:
    first = echo.one((1, {2}))  # before the server's Handshake is known
    assert first == (1, {2})
    for value in VALUES:
        came = echo.one(value)
        assert (type(came), came) == (type(value), value)
        assert echo.kind(value) == type(value).__qualname__
        if not isinstance(value, range):
            by_name = echo.all(first, value, key=[value])
            assert by_name == ((first, value), {"key": [value]})
    futures = [echo.one.remote(value) for value in VALUES]
    assert [future.result(300) for future in futures] == VALUES
    assert echo.tuple_of(1) == (1,), "the call is carried by msgpack, and its result is not"
    assert type(echo.one(Here(1))) is Here


def test_handles_arrive_in_pickles(client: Client, echo: ActorHandle) -> None:
    other = client.create_actor(Echo, name="other")
    (came, again), _ = echo.all((other.options(timeout=7),), {echo})
    assert (came[0], again) == (other, {echo})
    assert came[0].one(5) == 5
    assert came[0]._options.timeout == 7


def test_arrays_in_pickles(echo: ActorHandle) -> None:
    array = np.arange(1 << 18, dtype=np.float64)
    assert echo.mean(Settings("run", extra={"array": array})) == array.mean()
    came = echo.one(Settings("run", extra={"array": array}))
    assert np.array_equal(came.extra["array"], array)
    transposed = (np.arange(10000).reshape(100, 100).T,)
    assert np.array_equal(echo.one(transposed)[0], transposed[0])


def test_functions_are_sent_with_their_code(echo: ActorHandle) -> None:
    factor = 3
    assert echo.apply(lambda n: (n * factor,), 5) == (15,)


def test_what_cannot_be_pickled_is_named(echo: ActorHandle) -> None:
    with pytest.raises(EncodingError, match="a generator cannot be pickled") as caught:
        echo.one(n for n in range(3))
    assert (caught.value.argument, caught.value.ran) == ("args[0]", False)
    with pytest.raises(EncodingError, match="cannot be pickled") as caught:
        echo.apply(lambda _: threading.Lock(), 1)
    assert (caught.value.argument, caught.value.ran) == ("result", True)
    assert echo.one(memoryview(b"abc")) == b"abc", "of what is only a view, its bytes are sent"


@everywhere
def test_the_program_of_fray_lite(client: Client, tmp_path: Path) -> None:
    shards = []
    for i in range(4):
        shards.append(str(tmp_path / f"shard-{i}"))
        Path(shards[-1]).write_text("".join(f"{n}\n" for n in range(10 * i, 10 * i + 10)))
    operations: list[PhysicalOp] = [FilterOp(lambda n: n % 2 == 0), MapOp(lambda n: n * n)]
    group = client.create_actor_group(ZephyrWorker, name="zephyr-worker", count=2)
    futures = []
    for i, path in enumerate(shards):  # without waiting for them
        worker = group.handles[i % len(group.handles)]
        futures.append(worker.run_stage.remote(path, operations))
    found = [int(line) for future in futures for line in Path(future.result(300)).read_text().split()]
    assert found == [n * n for n in range(0, 40, 2)]


# What a method raises


@everywhere
def test_own_classes_are_caught(echo: ActorHandle) -> None:
    with pytest.raises(LessonError) as caught:
        echo.fail("own")
    assert isinstance(caught.value, ApplicationError)
    err: Any = caught.value
    assert (err.lesson, err.hint, err.args) == ("chess", "go", ("no such lesson: chess",))
    assert (err.type, err.ran, err.actor, err.method) == ("valued.LessonError", True, "echo", "fail")
    assert (err.message, err.raised.message) == ("LessonError: no such lesson: chess", "its own")
    assert str(err) == "echo.fail: LessonError: no such lesson: chess"
    assert type(err.raised) is LessonError
    assert isinstance(err.__cause__, RemoteTraceback)
    assert 'raise LessonError("chess", hint="go") from err' in str(err.__cause__)
    assert "ValueError: invalid literal" in str(err.__cause__)
    assert err.cause.type == "ValueError"
    found = echo.fail.remote("own").exception(300)
    assert isinstance(found, LessonError)
    for again in (pickle.loads(pickle.dumps(err)), pickle.loads(cloudpickle.dumps(err))):
        assert isinstance(again, LessonError)
        assert isinstance(again, ApplicationError)
        assert (str(again), again.hint, again.type) == (str(err), "go", err.type)


def test_a_class_of_the_program_is_caught(echo: ActorHandle) -> None:
    class OwnError(Exception):
        pass

    def fail(value: int) -> None:
        raise OwnError(value)

    with pytest.raises(OwnError) as caught:
        echo.apply(fail, 7)
    assert caught.value.args == (7,)
    assert isinstance(caught.value, ApplicationError)


def test_exceptions_of_python_are_caught(echo: ActorHandle) -> None:
    with pytest.raises(KeyError) as caught:
        echo.fail("key")
    assert caught.value.args == ("lesson", 7)
    with pytest.raises(FileNotFoundError) as missing:
        echo.fail("open")
    assert (missing.value.errno, missing.value.filename) == (2, "/no/such/lessons")
    with pytest.raises(FileLostError) as lost:
        echo.fail("file")
    assert (lost.value.errno, lost.value.filename) == (2, "lessons.txt")


@pytest.mark.parametrize(
    ("how", "kind", "why"),
    [
        ("keeping", KeepingError, "The exception itself was not sent: a KeepingError cannot be pickled"),
        ("vanishing", VanishingError, "cannot be had here: .*RuntimeError: it is not to be had"),
        ("stop", StopIteration, ""),
        ("exit", SystemExit, ""),
    ],
)
def test_what_cannot_be_had_keeps_its_text(
    echo: ActorHandle, how: str, kind: type[BaseException], why: str
) -> None:
    with pytest.raises(ApplicationError) as caught:
        echo.fail(how)
    err = caught.value
    assert not isinstance(err, kind)
    assert err.type.endswith(kind.__name__)
    assert "in fail" in err.traceback
    notes = "\n".join(getattr(err, "__notes__", ()))
    assert re.search(why, notes) if why else not notes
    assert echo.one(1) == 1


def test_the_class_passes_through_other_actors(client: Client, echo: ActorHandle) -> None:
    middle = client.create_actor(Echo, name="middle")
    with pytest.raises(LessonError) as caught:
        middle.fail_by(echo, "own")
    assert caught.value.hint == "go"
    assert caught.value.actor == "middle"  # type: ignore[attr-defined]


# Actors that create_actor did not make


def test_servers_of_other_actors_take_no_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", make_identity(tmp_path, "rl"))
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        server.register("echo", Echo())
        for handle in (ClusterResolver(cluster).lookup("echo"), ClusterResolver(cluster).handle("echo")):
            assert handle.one((1, 2)) == [1, 2]
            assert handle.tuple_of(1) == [1]
            with pytest.raises(EncodingError):
                handle.one({1, 2})
            with pytest.raises(KeyError) as caught:  # by its name: nothing is unpickled
                handle.fail("key")
            assert caught.value.args == ("lesson", 7)
            with pytest.raises(ApplicationError) as text:
                handle.fail("own")
            assert type(text.value) is ApplicationError
            assert text.value.type == "valued.LessonError"


def test_threads_that_share_a_future_get_the_same_class(echo: ActorHandle) -> None:
    future = echo.fail.remote("own")
    with ThreadPoolExecutor(8) as pool:
        found = [each.result() for each in [pool.submit(future.exception, 300) for _ in range(64)]]
    assert {isinstance(err, LessonError) for err in found} == {True}
