"""One server or one client in Python: `pair.py serve fray|grpcio`, `pair.py call fray|grpcio|invoke ADDRESS`.

`grpcio` echoes bytes as they are, between two programs of this kind. Programs in Go use the messages of
fray's own service: `invoke` calls them with grpcio, and the server of grpcio answers them, too.
"""

from __future__ import annotations

import sys
import threading
from concurrent import futures

from rows import latency, rate

from fray._pb.actor_pb2 import DESCRIPTOR, Call, Reply

SIZES = {"64 B": 64, "4 KiB": 4 << 10, "1 MiB": 1 << 20}
METHOD = "/bench.Echo/Echo"
INVOKE = f"/{DESCRIPTOR.services_by_name['Actors'].full_name}/Invoke"
LIMIT = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


class Echo:
    def echo(self, data: bytes) -> bytes:
        return data


def serve_fray() -> None:
    from fray.cluster import LocalCluster
    from fray.rpc import ActorServer

    server = ActorServer(LocalCluster())
    server.register("echo", Echo())
    announce(server.address)
    server.serve()


def serve_grpcio() -> None:
    import grpc

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
            if details.method == INVOKE:
                return grpc.unary_unary_rpc_method_handler(
                    lambda call, _: Reply(result=call.args), Call.FromString, Reply.SerializeToString
                )
            return (
                grpc.unary_unary_rpc_method_handler(lambda data, _: data)
                if details.method == METHOD
                else None
            )

    server = grpc.server(futures.ThreadPoolExecutor(16), options=LIMIT)
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    announce(f"127.0.0.1:{port}")
    server.wait_for_termination()


def announce(address: str) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()


def call_fray(address: str) -> None:
    from fray.cluster import FixedResolver

    echo = FixedResolver(address).lookup("echo").echo

    def many(data: bytes, n: int) -> None:
        for f in [echo.remote(data) for _ in range(n)]:
            f.result()

    measure(echo, many)


def call_grpcio(address: str) -> None:
    import grpc

    measure_grpcio(grpc.insecure_channel(address, options=LIMIT).unary_unary(METHOD))


def call_invoke(address: str) -> None:
    import grpc

    measure_grpcio(
        grpc.insecure_channel(address, options=LIMIT).unary_unary(
            INVOKE,
            lambda data: Call(actor="echo", method="echo", args=data).SerializeToString(),
            lambda data: Reply.FromString(data).result,
        )
    )


def measure_grpcio(echo) -> None:
    def many(data: bytes, n: int) -> None:
        for f in [echo.future(data) for _ in range(n)]:
            f.result()

    measure(echo, many)


def measure(echo, many) -> None:
    for name, size in SIZES.items():
        data = bytes(size)
        latency(name, lambda data=data: echo(data), 2000 if size < 1 << 20 else 300)
        rate(f"{name}, 1 in flight", lambda data=data: echo(data), 1)
        rate(f"{name}, 64 in flight", lambda data=data: many(data, 64), 64)


if __name__ == "__main__":
    threading.stack_size(512 << 10)
    parts = {("serve", "fray"): serve_fray, ("serve", "grpcio"): serve_grpcio}
    calls = {"fray": call_fray, "grpcio": call_grpcio, "invoke": call_invoke}
    match sys.argv[1:]:
        case ["serve", kind]:
            parts["serve", kind]()
        case ["call", kind, address]:
            calls[kind](address)
        case _:
            sys.exit("usage: pair.py serve|call fray|grpcio|invoke [ADDRESS]")
