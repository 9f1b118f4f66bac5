"""Check that the Cloud TPU API of the Go code is the one that Google publishes.

The Go package tpuapi is generated from a .proto of its own and has exactly what its
testdata/fields.txt lists: a Go test holds that. Here the list is compared with the
descriptors of google-cloud-tpu, so that a field of a node can be set only where the API has it.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import grpc
from google.cloud.tpu_v2alpha1.services.tpu.transports.grpc import TpuGrpcTransport
from google.cloud.tpu_v2alpha1.types import cloud_tpu
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

PACKAGE = "google.cloud.tpu.v2alpha1"
FIELDS = Path(__file__).parents[2] / "providers/gcp/tpuapi/testdata/fields.txt"

SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
}


def short(full_name: str) -> str:
    """Return a name as it is written in the package."""
    return full_name.removeprefix(PACKAGE + ".")


def kind(of: FieldDescriptor) -> str:
    """Return the type of a field as it is written there."""
    other = of.message_type or of.enum_type
    if other is None:
        return SCALARS[of.type]
    return str(other.name if other.full_name.startswith(PACKAGE + ".") else other.full_name)


def field(message: Descriptor, of: FieldDescriptor) -> str:
    """Return the line of a field."""
    name = of.name.rstrip("_")  # Python's words get one
    written = kind(of)
    if of.message_type is not None and of.message_type.GetOptions().map_entry:
        key, value = (of.message_type.fields_by_name[name] for name in ("key", "value"))
        written = f"map<{kind(key)}, {kind(value)}>"
    elif of.is_repeated:
        written = "repeated " + written
    one = of.containing_oneof
    if one is not None and one.name.startswith("_"):
        return f"field {short(message.full_name)} {name} {of.number} optional {written}"
    suffix = f" oneof:{one.name}" if one is not None else ""
    return f"field {short(message.full_name)} {name} {of.number} {written}{suffix}"


def enum(of: EnumDescriptor) -> list[str]:
    """Return the lines of an enum."""
    return [f"enum {short(of.full_name)} {value.name} {value.number}" for value in of.values]


def messages(all_of: list[Descriptor]) -> list[Descriptor]:
    """Return messages and those within them, without the entries of maps."""
    found = [m for m in all_of if not m.GetOptions().map_entry]
    return found + [inner for m in found for inner in messages(m.nested_types)]


class Nothing:
    """A call that answers nothing."""

    def with_call(self, *_: Any, **__: Any) -> tuple[None, None]:
        """Answer at once."""
        return None, None


class Recorder(grpc.Channel):
    """A channel that notes which calls are made, and makes none."""

    def __init__(self) -> None:
        """Begin without any."""
        self.calls: list[str] = []

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        *_more: Any,
        **_named: Any,
    ) -> Any:
        """Note a call with its messages, by what writes and reads them."""
        service, name = method.strip("/").split("/")
        if service == PACKAGE + ".Tpu":
            asks, answers = (full_name(of.__self__) for of in (request_serializer, response_deserializer))
            self.calls.append(f"rpc {name} {asks} -> {answers}")
        return Nothing()

    def unary_stream(self, *_: Any, **__: Any) -> Any:
        """There are no streams."""

    stream_unary = stream_stream = unary_stream

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Nothing changes."""

    unsubscribe = subscribe

    def close(self) -> None:
        """Nothing is open."""


def full_name(message: Any) -> str:
    """Return the name of a message's class, of the package's own in short."""
    of = message.pb().DESCRIPTOR if hasattr(message, "pb") else message.DESCRIPTOR
    return short(of.full_name)


def rpcs() -> list[str]:
    """Return the lines of the calls that Google's client makes."""
    recorder = Recorder()
    transport = TpuGrpcTransport(channel=recorder)
    for name, member in vars(TpuGrpcTransport).items():
        if isinstance(member, property) and not name.startswith("_"):
            call = getattr(transport, name)
            if callable(call):
                call(None)
    return recorder.calls


def test_tpu_api_is_googles() -> None:
    """Every message, field, enum and call is Google's, and none of theirs is missing."""
    file = cloud_tpu.Node.pb().DESCRIPTOR.file
    published = messages(list(file.message_types_by_name.values()))
    top = [m for m in published if m.containing_type is None]
    assert len(top) == 52, "Google's list has changed: take its messages over into tpu.proto"
    lines = set(rpcs())
    for message in published:
        lines.update(field(message, each) for each in message.fields)
        for each in message.enum_types:
            lines.update(enum(each))
    for each in file.enum_types_by_name.values():
        lines.update(enum(each))
    ours = {line for line in FIELDS.read_text().splitlines() if not line.startswith("#")}
    different = [line for line in difflib.ndiff(sorted(ours), sorted(lines)) if line[0] in "+-"]
    assert not different, "(- ours, + Google's)\n" + "\n".join(different)
