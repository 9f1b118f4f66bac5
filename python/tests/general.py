"""A general gRPC client, which knows of fray only what it gets by reflection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from actors import PATIENCE


class General:
    """A client made by reflection."""

    def __init__(self, channel: grpc.Channel) -> None:
        database = ProtoReflectionDescriptorDatabase(channel)
        self.services = database.get_services()
        pool = descriptor_pool.DescriptorPool(database)
        self._service: Any = pool.FindServiceByName("fray.actor.v1.Actors")  # type: ignore[no-untyped-call]
        self._channel = channel

    def __call__(self, name: str, timeout: float = PATIENCE, **fields: Any) -> Any:
        return self.begin(name, timeout, **fields).result()

    def stream(self, name: str, timeout: float = PATIENCE, **fields: Any) -> Any:
        method = self._service.FindMethodByName(name)
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        call = self._channel.unary_stream(
            f"/{self._service.full_name}/{name}", request.SerializeToString, response.FromString
        )
        return call(request(**fields), timeout=timeout)

    def begin(self, name: str, timeout: float = PATIENCE, **fields: Any) -> Any:
        method = self._service.FindMethodByName(name)
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        call = self._channel.unary_unary(
            f"/{self._service.full_name}/{name}", request.SerializeToString, response.FromString
        )
        return call.future(request(**fields), timeout=timeout)


def secure_channel(address: str, identity: str) -> grpc.Channel:
    """Return a channel of grpcio by a namespace's identity, the path of a PEM file."""
    pem = Path(identity).read_bytes()
    return grpc.secure_channel(
        address,
        grpc.ssl_channel_credentials(pem, pem, pem),
        options=[("grpc.ssl_target_name_override", "fray-actors")],
    )
