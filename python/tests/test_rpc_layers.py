"""The modules of fray.rpc are layers: each imports only from those below, wherever in a file it does so."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import fray
import fray.rpc

# From the bottom up: a module may import those of earlier layers, and none of its own.
LAYERS = (
    "_codec _codec.common _transport _transport.amid _transport.background _transport.fork"
    " _transport.memory _transport.names _transport.proof _transport.receive_turn _transport.retry"
    " _transport.trace _transport.wire _calling _calling.gcp_api _calling.outcome _calling.promise"
    " _calling.questions _serving _serving.arguments _serving.event_loop _serving.parameters errors",
    "_codec.arrays _codec.checking _codec.reducing _codec.weighing _transport.call_chain"
    " _transport.failure _transport.http _transport.large _transport.settings _transport.shared"
    " _transport.tls _calling.inbox _calling.standard_future _serving.idle _serving.metrics"
    " _serving.reply",
    "_codec.lowering _codec.pickling _transport.transfer _calling.resolve _calling.selfcall"
    " _serving.output _serving.stream stream",
    "_codec.packing _codec.text _transport.reader _transport.writer _calling.resolve_cluster"
    " _calling.target _serving.ledger _serving.ownership",
    "_transport.raised _calling.dial _calling.pending _calling.results _serving.delivery codec",
    "_calling.connection _calling.result options",
    "_calling.ongoing",
    "_calling.backlog _calling.channel future",
    "_calling.future_arguments _calling.verdict",
    "_calling.route waiting",
    "handle",
    "actor_pool resolver",
    "client context gcp pool",
    "_serving.methods",
    "_serving.call",
    "_serving.serial_queue",
    "_serving.mailbox",
    "_serving.actor",
    "_serving.core",
    "_serving.grpc _serving.session",
    "_serving.listener",
    "server",
    "local",
    "__init__",  # the package itself
)

# What the modules of each room may import: those of other rooms, and some that programs import too.
ROOMS = {
    "_codec": "",
    "_transport": "_codec errors",
    "_calling": "_transport errors codec options future",
    "_serving": "_transport errors codec context resolver",
}
MOST = 40
"""Modules in one room."""

PACKAGE = "fray.rpc"
LEVELS = {module: level for level, line in enumerate(LAYERS) for module in line.split()}


def sources() -> dict[str, str]:
    """Return the text of each module, by its name within the package."""
    root = Path(fray.rpc.__file__).parent
    found = {}
    for path in root.rglob("*.py"):
        parts = list(path.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        found[".".join(parts)] = path.read_text()
    return found


def imported(module: str, text: str, modules: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each module of the package that a text imports, at whatever depth."""

    def known(name: str) -> str | None:
        if name == PACKAGE:
            return "__init__"
        within = name.removeprefix(f"{PACKAGE}.")
        return within if within != name and within in modules else None

    package = [PACKAGE, *module.split(".")[:-1]]
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parts = ".".join(package).split(".")
                base = parts[: len(parts) - node.level + 1]
                source = ".".join([*base, source] if source else base)
            # from fray.rpc import stream imports a module, from fray.rpc.stream import ActorStream from one.
            names = [name if known(name := f"{source}.{a.name}") else source for a in node.names]
            if source == "fray":
                names = [f"fray.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and _is_dynamic(node.func) and module != "__init__":
            names = [str(a.value) for a in node.args if isinstance(a, ast.Constant)] or [PACKAGE]
        yield from ((node.lineno, found) for name in names if (found := known(name)) is not None)


def _is_dynamic(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def upward(module: str, text: str) -> list[str]:
    """Return the imports of a module that do not go down."""
    return [
        f"{module}:{line} imports {other}"
        for line, other in imported(module, text, LEVELS)
        if LEVELS[other] >= LEVELS[module]
    ]


def test_each_module_has_one_layer() -> None:
    assert sorted(LEVELS) == sorted(sources())


def test_imports_go_down() -> None:
    assert [found for module, text in sources().items() for found in upward(module, text)] == []


def test_each_module_is_described() -> None:
    missing = [module for module, text in sources().items() if not ast.get_docstring(ast.parse(text))]
    assert missing == []


def room_of(module: str) -> str:
    """Return the room of a module, or the module itself where programs import it."""
    return module.split(".")[0]


def sideways(module: str, text: str) -> list[str]:
    """Return the imports of a module that its room may not have."""
    room = room_of(module)
    if room not in ROOMS:
        return []
    allowed = {room, *ROOMS[room].split()}
    return [
        f"{module}:{line} imports {other}"
        for line, other in imported(module, text, LEVELS)
        if room_of(other) not in allowed
    ]


def test_rooms_have_one_direction() -> None:
    assert [found for module, text in sources().items() for found in sideways(module, text)] == []


def test_rooms_use_what_they_may_import() -> None:
    used = {room: set[str]() for room in ROOMS}
    for module, text in sources().items():
        if (room := room_of(module)) in ROOMS:
            used[room].update(room_of(other) for _, other in imported(module, text, LEVELS))
    unused = {room: set(allowed.split()) - used[room] for room, allowed in ROOMS.items()}
    assert not any(unused.values()), unused


def test_private_modules_are_in_rooms() -> None:
    """What programs import is easy to find among few modules."""
    assert {room_of(module) for module in sources() if module.startswith("_")} == {*ROOMS, "__init__"}


def crowded(root: Path) -> dict[str, int]:
    """Return the rooms with too many modules, and how many these are."""
    rooms = Counter(str(path.parent.relative_to(root)) for path in root.rglob("*.py"))
    return {room: count for room, count in rooms.items() if count > MOST}


def test_no_room_is_crowded() -> None:
    root = Path(fray.__file__).parent
    assert crowded(root) == {}, "split it by its ideas"


def test_a_crowded_room_is_found(tmp_path: Path) -> None:
    for room, count in (("few", MOST), ("many", MOST + 1)):
        (tmp_path / room).mkdir()
        for n in range(count):
            (tmp_path / room / f"{n}.py").touch()
    assert crowded(tmp_path) == {"many": MOST + 1}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("_transport.failure", "from fray.rpc._calling.inbox import Inbox"),
        ("_calling.route", "from fray.rpc._serving import idle"),
        ("_serving.call", "def f():\n    from fray.rpc._calling import outcome"),
        ("_transport.tls", "from fray.rpc.codec import Codec"),
    ],
)
def test_an_import_sideways_is_found(module: str, text: str) -> None:
    assert len(sideways(module, text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import fray.rpc.server",
        "import fray.rpc",
        "from fray.rpc import server",
        "from fray.rpc import ActorServer",
        "from fray import rpc",
        "from fray.rpc.server import ActorServer",
        "from .server import ActorServer",
        "from . import server",
        "from fray.rpc import codec, server",
        "from fray.rpc.handle import ActorHandle  # itself",
        "def f():\n    from fray.rpc.resolver import handle_of",
        "class A:\n    def f(self):\n        import fray.rpc._serving.core",
        "if TYPE_CHECKING:\n    from fray.rpc.handle import ActorHandle",
        "try:\n    pass\nfinally:\n    import fray.rpc.pool",
        "import_module('fray.rpc.server')",
        "importlib.import_module('fray.rpc.server')",
    ],
)
def test_an_import_upward_is_found(text: str) -> None:
    assert len(upward("handle", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from fray.rpc import codec",
        "from .codec import encode_args",
        "import fray.rpc.future",
        "import fray.cluster",
        "from fray._locks import Changes",
        "from fray.rpc._codec import packing",
        "# from fray.rpc.server import ActorServer",
    ],
)
def test_an_import_downward_is_allowed(text: str) -> None:
    assert upward("handle", text) == []


def test_relative_imports_of_the_codec() -> None:
    assert upward("_codec.common", "from .packing import decode") == [
        "_codec.common:1 imports _codec.packing"
    ]
    assert upward("_codec.packing", "from ..codec import Codec") == ["_codec.packing:1 imports codec"]
    assert upward("_codec.packing", "from ..errors import ActorError") == []
