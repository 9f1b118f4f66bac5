"""Where a cluster is, and whether it is the right one."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from controller import TOKEN, Controller
from fray.cluster import (
    AccessDeniedError,
    ClusterUnavailableError,
    Entrypoint,
    FrayCluster,
    JobId,
    JobRequest,
)
from fray.cluster.remote.spec import Spec, parse


@dataclass
class Secured:
    controller: Controller
    fingerprint: str


def certificate() -> tuple[bytes, bytes, str]:
    """Return a self-signed certificate as fray's controllers have it: key, certificate, fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fray")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("fray")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    der = made.public_bytes(serialization.Encoding.DER)
    return private, made.public_bytes(pem), hashlib.sha256(der).hexdigest()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    key, chain, fingerprint = certificate()
    controller = Controller(tmp_path)
    server = controller.serve(grpc.ssl_server_credentials([(key, chain)]))
    yield Secured(controller, fingerprint)
    server.stop(None).wait(10)


def test_the_certificate_is_pinned(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
    colons = ":".join(secured.fingerprint[i : i + 2] for i in range(0, 64, 2)).upper()
    spec = f"fray://{secured.controller.address}?fingerprint={colons}&namespace=rl"
    cluster = FrayCluster.from_spec(spec)
    cluster.launch(JobRequest("train", Entrypoint.from_command(["true"])))
    assert [job.request.namespace for job in secured.controller.jobs.values()] == ["rl"]
    cluster.close()


def test_another_certificate_is_rejected_before_the_token_is_sent(secured: Secured) -> None:
    with pytest.raises(AccessDeniedError, match=secured.fingerprint):
        FrayCluster(secured.controller.address, fingerprint="0" * 64, token=TOKEN)
    assert not secured.controller.outages.calls


def test_the_pin_holds_for_later_connections(tmp_path: Path) -> None:
    """A controller that takes the port with another certificate gets nothing."""
    key, chain, fingerprint = certificate()
    first = Controller(tmp_path)
    server = first.serve(grpc.ssl_server_credentials([(key, chain)]))
    cluster = FrayCluster(first.address, fingerprint=fingerprint, token=TOKEN)
    cluster._connection.timeout = 1
    server.stop(None).wait(10)
    key, chain, _ = certificate()
    second = Controller(tmp_path)
    server = second.serve(grpc.ssl_server_credentials([(key, chain)]), first.address)
    with pytest.raises(ClusterUnavailableError):
        cluster.poll(JobId("train"))
    assert not second.outages.calls
    cluster.close()
    server.stop(None).wait(10)


def test_plain_text_to_a_secured_controller_fails(secured: Secured) -> None:
    cluster = FrayCluster(secured.controller.address, token=TOKEN, timeout=0.5)
    with pytest.raises(ClusterUnavailableError):
        cluster.poll(JobId("train"))
    cluster.close()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("fray://127.0.0.1:80", Spec("127.0.0.1", 80)),
        ("fray://localhost:80/", Spec("localhost", 80)),
        ("fray://[::1]:80", Spec("::1", 80)),
        (f"fray://10.0.0.1:80?fingerprint={'AB' * 32}", Spec("10.0.0.1", 80, "ab" * 32)),
        ("fray://127.0.0.1:80?namespace=rl", Spec("127.0.0.1", 80, namespace="rl")),
    ],
)
def test_specs(text: str, want: Spec) -> None:
    assert parse(text) == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fray://127.0.0.1", "no fray://host:port"),
        ("fray://127.0.0.1:port", "no fray://host:port"),
        ("fray://:80", "no fray://host:port"),
        ("http://127.0.0.1:80", "no fray://host:port"),
        ("fray://127.0.0.1:80/path", "no fray://host:port"),
        ("fray://me@127.0.0.1:80", "no fray://host:port"),
        ("fray://127.0.0.1:80?fingerprint=ab", "no SHA-256 in hex"),
        ("fray://127.0.0.1:80?finger=ab", "finger means nothing"),
        ("fray://10.0.0.1:80", "a token must not leave it in plain text"),
        ("fray://cluster.example:80", "a token must not leave it in plain text"),
    ],
)
def test_specs_that_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_ipv6_targets_have_brackets() -> None:
    assert Spec("::1", 80).target == "[::1]:80"
