"""Nothing that a run receives is unpickled: payloads, arguments of roles, and files of checkpoints."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors import Caller
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rl import Config
from fray.rl.hosting import Hosting, places_of
from fray.rl.train.checkpoints import CheckpointError
from fray.rl.train.service import pack_arrays, read_arrays
from fray.rl.wire import PayloadError, pack, unpack, unpack_batch
from rl_run import Run
from test_rl_hosting import BASE


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.mark.parametrize("read", [unpack, unpack_batch])
def test_a_payload_is_no_pickle(ran: Path, read: Callable[[bytes], Any]) -> None:
    evil = pickle.dumps(Evil(ran))
    for payload in (evil, struct.pack("<QQ", 1, len(evil)) + evil):
        with pytest.raises(PayloadError):
            read(payload)
    assert not ran.exists()


def test_objects_are_not_packed(ran: Path) -> None:
    for value in (Evil(ran), np.array([Evil(ran)], dtype=object)):
        with pytest.raises(PayloadError, match="cannot be packed"):
            pack({"x": value})


def test_roles_take_no_pickle_of_the_namespace_either(ran: Path) -> None:
    with LocalCluster() as cluster:
        run = Run(cluster)
        config = Config(BASE)
        hosted = Hosting(config, places_of(["algorithm_processor"], config), cluster)
        with Caller(hosted.address, codec=3, secret=cluster.actor_secret("default")) as caller:
            reply = caller.send("algorithm_processor_0", "load_checkpoint", Evil(ran)).reply()
        assert reply.error.code == actor_pb2.CODE_DENIED
        assert not reply.error.ran
        hosted.stop()
        run.server.shutdown()
    assert not ran.exists()


def test_arrays_of_a_checkpoint_are_no_pickle(ran: Path, tmp_path: Path) -> None:
    with (tmp_path / "evil.npz").open("wb") as file:
        np.savez(file, x=np.array([Evil(ran)], dtype=object))
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Evil(ran)))
    whole = pack_arrays({"x": np.arange(1000)})
    (tmp_path / "torn.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.npz").touch()
    for name in ("evil", "plain", "torn", "empty", "absent"):
        with pytest.raises(CheckpointError, match=f"{name}.npz cannot be read"):
            read_arrays(tmp_path / f"{name}.npz")
    assert not ran.exists()
    with pytest.raises(ValueError, match="allow_pickle"):
        pack_arrays({"x": np.array([Evil(ran)], dtype=object)})
