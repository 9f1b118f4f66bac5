"""Certificates by which the actors of a namespace know each other, as package clusterapi/identity makes them.

The registry is the authority. Its key is kept with its other records, so that certificates stay valid when
its process dies.
"""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_MEMBER_NAME = "fray-actors"  # in every certificate of a member
_SERVER_NAME = "fray"  # in that of the cluster API
_BEGIN = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)  # none (RFC 5280, 4.1.2.5)
_LONGEST_NAME = 64  # characters of a common name (X.509, ub-common-name)


@dataclass(frozen=True)
class ServerCertificate:
    """What the cluster API shows to clients from other machines."""

    key: bytes
    """In PEM."""
    certificate: bytes
    """In PEM."""
    fingerprint: str
    """The SHA-256 of the certificate in hex, by which clients know it."""


class Authority:
    """Certifies members of namespaces."""

    def __init__(self, key: bytes, cluster: str) -> None:
        """Take a private key in PEM, as `new_key` makes it, for a cluster of this mark.

        Raises:
            ValueError: that is no such key.
        """
        loaded = load_pem_private_key(key, None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError(f"the key of the authority is a {type(loaded).__name__}, want one of P-256")
        self._key, self._cluster = loaded, cluster
        self._name = _name(f"fray authority of {cluster}", loaded)
        usage = _usage(certifies=True)
        self._certificate = (
            _builder(self._name, self._name, loaded.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(loaded.public_key()), critical=False)
            .sign(loaded, hashes.SHA256())
        )

    def identity(self, namespace: str) -> bytes:
        """Return what a member of a namespace proves itself by: key, certificate and authority in PEM.

        It is the content of a file that FRAY_ACTOR_IDENTITY names.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        names = [x509.DNSName(_MEMBER_NAME), x509.UniformResourceIdentifier(self._space(namespace))]
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            _builder(_name(f"fray actors of {namespace}", key), self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(certifies=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        own = self._certificate.public_bytes(Encoding.PEM)
        return _private(key) + certificate.public_bytes(Encoding.PEM) + own

    def _space(self, namespace: str) -> str:
        return f"fray://{self._cluster}/{namespace}"


def new_key() -> bytes:
    """Return a private key in PEM."""
    return _private(ec.generate_private_key(ec.SECP256R1()))


def server_certificate() -> ServerCertificate:
    """Return a new key and its certificate for the cluster API."""
    loaded = ec.generate_private_key(ec.SECP256R1())
    name = _name("fray", loaded)
    certificate = (
        _builder(name, name, loaded.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_SERVER_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(loaded, hashes.SHA256())
    )
    found = certificate.fingerprint(hashes.SHA256()).hex()
    return ServerCertificate(_private(loaded), certificate.public_bytes(Encoding.PEM), found)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
    )


def _name(text: str, key: ec.EllipticCurvePrivateKey) -> x509.Name:
    """Return a name that no other key has."""
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, text[:_LONGEST_NAME]),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, hashlib.sha256(point).hexdigest()[:16]),
        ]
    )


def _usage(certifies: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certifies,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certifies,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
