"""Echoes within TLS, by turns: `secured.py DIRECTORY` measures, `secured.py serve fray|ssl IDENTITY` serves.

fray's actors stand beside a socket of Python's ssl that carries the same bytes with the same certificate.
"""

from __future__ import annotations

import os
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from rows import tell

SIZES = {"64 B": 64, "4 KiB": 4 << 10, "1 MiB": 1 << 20}
TURNS = 5
SECONDS = 0.7  # of a turn


class Echo:
    def echo(self, data: bytes) -> bytes:
        return data


def identity(folder: Path) -> str:
    """Write a certificate that signs itself, and its key, as the tasks of a cluster have them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(1970, 1, 1))
        .not_valid_after(datetime(9999, 12, 31))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("fray-actors")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "identity.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(path)


def context(path: str, server: bool) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(path)
    made.load_verify_locations(path)
    return made


def serve_fray(_: str) -> None:
    from fray.cluster import LocalCluster
    from fray.rpc import ActorServer

    server = ActorServer(LocalCluster())
    server.register("echo", Echo())
    announce(server.address)
    server.serve()


def serve_ssl(path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        announce(f"127.0.0.1:{listener.getsockname()[1]}")
        plain, _ = listener.accept()
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = context(path, server=True).wrap_socket(plain, server_side=True)
    buffer = memoryview(bytearray(max(SIZES.values())))
    while got := peer.recv_into(buffer[:4], 4):
        size = int.from_bytes(buffer[:got])
        fill(peer, buffer[:size])
        peer.sendall(buffer[:size])


def announce(address: str) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()


def fill(peer: ssl.SSLSocket, view: memoryview) -> None:
    while view:
        view = view[peer.recv_into(view) :]


def call_fray(address: str, _: str) -> Callable[[bytes], object]:
    from fray.cluster import FixedResolver

    return FixedResolver(address).lookup("echo").echo


def call_ssl(address: str, path: str) -> Callable[[bytes], object]:
    host, port = address.split(":")
    plain = socket.create_connection((host, int(port)))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = context(path, server=False).wrap_socket(plain)
    buffer = memoryview(bytearray(max(SIZES.values())))

    def call(data: bytes) -> None:
        peer.sendall(len(data).to_bytes(4))
        peer.sendall(data)
        fill(peer, buffer[: len(data)])

    return call


def times(call: Callable[[bytes], object], data: bytes) -> list[float]:
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        call(data)
        found.append(time.perf_counter() - began)
    return sorted(found[len(found) // 10 :])


def main(folder: str) -> None:
    path = identity(Path(folder))
    os.environ["FRAY_ACTOR_IDENTITY"] = path
    servers, calls = [], {}
    try:
        for kind, dial in {"fray": call_fray, "ssl": call_ssl}.items():
            server = subprocess.Popen(
                [sys.executable, __file__, "serve", kind, path], stdout=subprocess.PIPE, text=True
            )
            servers.append(server)
            assert server.stdout
            calls[kind] = dial(server.stdout.readline().strip(), path)
        for name, size in SIZES.items():
            data = bytes(size)
            turns = [{kind: times(call, data) for kind, call in calls.items()} for _ in range(TURNS)]
            for kind in calls:
                for quantile in (50, 99):
                    found = [turn[kind][len(turn[kind]) * quantile // 100] for turn in turns]
                    tell(f"{kind}, {name} p{quantile}", statistics.median(found))
    finally:
        for server in servers:
            server.kill()
            server.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", "fray", path]:
            serve_fray(path)
        case ["serve", "ssl", path]:
            serve_ssl(path)
        case [folder]:
            main(folder)
        case _:
            sys.exit("usage: secured.py DIRECTORY")
