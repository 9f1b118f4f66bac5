"""The modules of fray.rpc are layers: each imports only from those below, wherever in a file it does so."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import fray.rpc

# From the bottom up: a module may import those of earlier layers, and none of its own.
LAYERS = (
    "_transport _calling _serving _transport.amid _serving.arguments _transport.background"
    " _serving.event_loop _transport.fork _gcp_api _transport.memory _transport.names _calling.outcome"
    " _serving.parameters _calling.promise _transport.proof _calling.questions _transport.receive_turn"
    " _calling.retry _trace _transport.wire errors _codec _codec.common",
    "_call_chain _transport.failure _transport.http _serving.idle _transport.large _serving.metrics"
    " _serving.reply _transport.settings _transport.shared _calling.standard_future _transport.tls"
    " _codec.arrays _codec.checking _codec.reducing _codec.weighing",
    "_calling.inbox _serving.output _calling.resolve _calling.selfcall _serving.stream"
    " _transport.transfer _codec.lowering _codec.pickling",
    "_serving.ledger _serving.ownership _transport.reader _calling.target _calling.resolve_cluster"
    " _transport.writer stream _codec.packing _codec.text",
    "_serving.delivery _calling.dial _calling.pending _calling.results _calling.raised codec",
    "_calling.connection",
    "_calling.result options",
    "_calling.ongoing",
    "_calling.backlog _calling.channel future",
    "_calling.future_arguments _calling.route waiting",
    "handle",
    "resolver",
    "actor_pool client context gcp pool",
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


def test_a_package_has_few_modules() -> None:
    root = Path(fray.rpc.__file__).parents[1]
    counts = {path.parent: 0 for path in root.rglob("*.py")}
    for path in root.rglob("*.py"):
        counts[path.parent] += 1
    assert {str(package): count for package, count in counts.items() if count > 40} == {}


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
