"""A server and a caller for actorrpc/across, whose orders are lines of JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from fray.cluster import Cluster, ClusterError, JobId, LocalCluster, current_cluster
from fray.rpc import (
    ActorContext,
    ActorFuture,
    ActorHandle,
    ActorMethod,
    ActorServer,
    ClusterResolver,
    ConnectionSettings,
    FixedResolver,
    RpcOptions,
    method,
)
from fray.rpc._transport.trace import call_trace
from fray.rpc.codec import Codec, CodecError, decode_args, encode_result
from fray.rpc.errors import ActorError, UnavailableError
from fray.rpc.resolver import handle_of

LONGEST = 3600.0


class LessonError(LookupError):
    pass


class Subject:
    """The actor that both languages have; subject_test.go has it in Go."""

    def __init__(self) -> None:
        self._n = 0
        self._seen: list[int] = []

    def add(self, by: int) -> int:
        self._n += by
        return self._n

    @method(idempotent=True)
    def total(self) -> int:
        return self._n

    def echo(self, v: Any) -> Any:
        return v

    def note(self, n: int) -> None:
        self._seen.append(n)

    def seen(self) -> list[int]:
        return self._seen

    def fail(self, text: str) -> None:
        raise ValueError(text) from KeyError("inner")

    def flaky(self, times: int) -> int:
        self._n += 1
        if self._n <= times:
            raise LessonError("no such lesson")
        return self._n

    @method(retries=2, retry_exceptions=[LookupError])
    def declared(self, times: int) -> int:
        return self.flaky(times)

    def odd(self) -> Any:
        return {"deep": [1, {1, 2}]}

    def rare(self) -> Any:
        return {1: float("nan"), -2: float("inf"), 3: 1 << 63}

    def is_rare(self, v: Any) -> bool:
        return bool(sorted(v) == [-2, 1, 3] and v[1] != v[1] and v[-2] == float("inf") and v[3] == 1 << 63)

    def trace(self, ctx: ActorContext) -> str:
        return ctx.trace

    def mixed(self, a: str, b: dict[str, Any], c: list[int]) -> None:  # noqa: ARG002
        self._n += 1

    def big(self, n: int) -> bytes:
        return bytes(n)

    async def wait(self) -> None:
        await asyncio.sleep(LONGEST)

    def left(self, ctx: ActorContext) -> bool:
        left = ctx.remaining()
        return left is not None and 0 < left < LONGEST

    def count(self, n: int) -> Iterator[int]:
        try:
            yield from range(n)
        finally:
            self._n += 1

    def dry(self, n: int) -> Iterator[int]:
        yield from range(n)
        raise ValueError("the well is dry")

    def blobs(self, n: int, size: int) -> Iterator[bytes]:
        for _ in range(n):
            yield bytes(size)

    def forward(self, to: ActorHandle, name: str, args: list[Any]) -> Any:
        return to[name](*args)


def say(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def serve(orders: dict[str, Any]) -> None:
    """Host two subjects until the input ends."""
    cluster = current_cluster() if os.environ.get("FRAY_CLUSTER_SPEC") else LocalCluster()
    server = ActorServer(
        cluster,
        "127.0.0.1",
        orders["port"],
        namespace=orders["namespace"],
        max_message_bytes=orders["max"],
    )
    server.serve_background()
    alone: ActorServer | None = None
    try:
        for name in ("subject", "other"):
            server.register(name, Subject(), max_concurrency=1)
        if orders["unique"]:
            alone = single(cluster, orders)
    except ClusterError as err:
        say(f"refused: {err}")
        return
    say(server.address)
    sys.stdin.read()
    for each in (server, alone) if alone else (server,):
        each.shutdown(0)


def single(cluster: Cluster, orders: dict[str, Any]) -> ActorServer:
    """Register a name that is unique: servers share the names of their own actors."""
    job = JobId(os.environ.pop("FRAY_JOB_ID"))  # which the cluster of the other server does not know
    own = ActorServer(LocalCluster(), "127.0.0.1", namespace=orders["namespace"])
    incarnation = own.register(orders["unique"], Subject(), max_concurrency=1)
    own.serve_background()
    cluster.metadata.register(orders["unique"], own.address, job, unique=True, actor_id=incarnation)
    return own


class Caller:
    """Makes the same calls as caller_test.go."""

    def __init__(self) -> None:
        self._futures: dict[int, ActorFuture[Any]] = {}

    def do(self, order: dict[str, Any]) -> dict[str, Any]:
        call_trace.set(order.get("trace") or "")
        try:
            return {"value": getattr(self, "do_" + order["do"])(order)}
        except ActorError as err:
            return {"error": wire_fields(err)}
        except ClusterError as err:
            return {"error": {"code": "unavailable", "message": str(err)}}

    def do_call(self, order: dict[str, Any]) -> str:
        args, kwargs = self._arguments(order)
        return written(bound(order)(*args, **kwargs))

    def do_begin(self, order: dict[str, Any]) -> str:
        args, kwargs = self._arguments(order)
        self._futures[order["id"]] = bound(order).remote(*args, **kwargs)
        return ""

    def do_end(self, order: dict[str, Any]) -> str:
        return written(self._futures.pop(order["id"]).result())

    def do_cancel(self, order: dict[str, Any]) -> str:
        self._futures[order["id"]].cancel()
        return ""

    def do_find(self, order: dict[str, Any]) -> str:
        return " ".join(in_cluster(order).resolve(order["actor"]))

    def do_await(self, order: dict[str, Any]) -> str:
        resolver, name = in_cluster(order), order["actor"]
        resolver.wait_for_actor(name, LONGEST, JobId(order["job"]))
        while len(resolver.lookup_all(name)) < order["size"]:
            resolver.directory.wait(name, 1)
        return str(len(resolver.lookup_all(name)))

    def do_burst(self, order: dict[str, Any]) -> str:
        futures = [bound(order).remote(n) for n in range(order["size"])]
        for future in futures:
            future.result()
        return ""

    def do_stream(self, order: dict[str, Any]) -> str:
        args, kwargs = self._arguments(order)
        got, end = [], ""
        try:
            for item in bound(order)(*args, **kwargs):
                got.append(len(item) if isinstance(item, bytes) else item)
                if len(got) == order.get("leave"):
                    break
        except ActorError as err:
            end = f" then {err.code}: {err.message.removeprefix('ValueError: ')}"
        return written(got) + end

    def do_relay(self, order: dict[str, Any]) -> str:
        first, second = (bound({**order, "method": name}) for name in order["method"].split())
        return written(second(first()))

    def do_grpc(self, order: dict[str, Any]) -> str:
        import grpc

        from general import General, secure_channel

        with secure_channel(order["address"], order["identity"]) as channel:
            try:
                reply = General(channel)(
                    "Invoke",
                    actor="subject",
                    method="echo",
                    codec=int(Codec.JSON),
                    args=order["args"].encode(),
                )
            except grpc.RpcError as err:
                raise UnavailableError(str(err)) from err
            return bytes(reply.result).decode()

    def _arguments(self, order: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        if order.get("odd"):
            return [{"lr": {1, 2}}], {}
        if order.get("size"):
            return [bytes(order["size"])], {}
        return decode_args(
            Codec.JSON,
            order["args"].encode(),
            on_actor=lambda ref: handle_of(*ref),
        )


def options_of(order: dict[str, Any]) -> RpcOptions:
    return RpcOptions(
        timeout=order.get("timeout") or None,
        retries=order.get("retries") or None,
        retry_exceptions=_retried(order.get("retry_of") or ""),
        resolve_timeout=order.get("resolve") or 60.0,
    )


def _retried(kind: str) -> bool | list[str] | None:
    if not kind:
        return None
    return kind == "*" or [kind]


def in_cluster(order: dict[str, Any]) -> ClusterResolver:
    return ClusterResolver(current_cluster(), options=options_of(order))


def bound(order: dict[str, Any]) -> ActorMethod:
    """Return the method that is to be called, of a handle made for it."""
    if order.get("cluster"):
        return in_cluster(order).handle(order.get("actor") or "subject")[order["method"]]
    resolver = FixedResolver(
        order["address"],
        options=options_of(order),
        settings=ConnectionSettings(
            peer="",
            namespace=order.get("namespace") or "",
            identity=order.get("identity") or "",
            max_message_bytes=order.get("max") or 1 << 30,
            allow_pickle=True,  # which takes an identity too
        ),
    )
    return resolver.handle(order.get("actor") or "subject")[order["method"]]


def written(value: Any) -> str:
    try:
        data, _ = encode_result(Codec.JSON, value)
    except CodecError as err:
        return str(err)
    return json.dumps(json.loads(bytes(data)), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def wire_fields(err: ActorError) -> dict[str, Any]:
    return {
        "code": str(err.code),
        "message": err.message,
        "ran": err.ran,
        "actor": err.actor,
        "method": err.method,
        "argument": err.argument,
        "near": list(err.near),
        "type": err.type,
        "traceback": err.traceback,
        "cause": err.cause.message if err.cause else "",
        "text": str(err),
    }


def main(orders: dict[str, Any]) -> None:
    if orders["role"] == "server":
        serve(orders)
        return
    caller = Caller()
    say("ready")
    for line in sys.stdin:
        say(caller.do(json.loads(line)))


if __name__ == "__main__":
    main(json.loads(os.environ["FRAY_ACROSS_ORDERS"]))
