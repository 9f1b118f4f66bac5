"""The modules of fray.rpc are layers: each imports only from those below, wherever in a file it does so."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import fray.rpc

# From the bottom up: a module may import those of earlier layers, and none of its own.
LAYERS = (
    "_amid _arguments _background _event_loop _fork _gcp_api _memory _names _outcome _parameters _promise"
    " _proof _questions _receive_turn _retry _trace _wire errors _codec _codec.common",
    "_call_chain _failure _http _idle _large _metrics _reply _settings _shared _standard_future _tls"
    " _codec.arrays _codec.checking _codec.reducing _codec.weighing",
    "_inbox _output _resolve _selfcall _stream _transfer _codec.lowering _codec.pickling",
    "_ledger _ownership _reader _target _resolve_cluster _writer stream _codec.packing _codec.text",
    "_delivery _dial _pending _results _raised codec",
    "_connection",
    "_result options",
    "_ongoing",
    "_backlog _channel future",
    "_future_arguments _route waiting",
    "handle",
    "resolver",
    "actor_pool client context gcp pool",
    "_methods",
    "_call",
    "_serial_queue",
    "_mailbox",
    "_actor",
    "_core",
    "_grpc _session",
    "_listener",
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
            # from fray.rpc import _wire imports a module, from fray.rpc._wire import Stream out of one.
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
        "from . import _core",
        "from fray.rpc import _wire, _core",
        "from fray.rpc._route import Route  # itself",
        "def f():\n    from fray.rpc.resolver import handle_of",
        "class A:\n    def f(self):\n        import fray.rpc._core",
        "if TYPE_CHECKING:\n    from fray.rpc.handle import ActorHandle",
        "try:\n    pass\nfinally:\n    import fray.rpc.pool",
        "import_module('fray.rpc.server')",
        "importlib.import_module('fray.rpc.server')",
    ],
)
def test_an_import_upward_is_found(text: str) -> None:
    assert len(upward("_route", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from fray.rpc import _wire",
        "from ._channel import Channel",
        "import fray.rpc.future",
        "import fray.cluster",
        "from fray._locks import Changes",
        "from fray.rpc._codec import packing",
        "# from fray.rpc.server import ActorServer",
    ],
)
def test_an_import_downward_is_allowed(text: str) -> None:
    assert upward("_route", text) == []


def test_relative_imports_of_the_codec() -> None:
    assert upward("_codec.common", "from .packing import decode") == [
        "_codec.common:1 imports _codec.packing"
    ]
    assert upward("_codec.packing", "from ..codec import Codec") == ["_codec.packing:1 imports codec"]
    assert upward("_codec.packing", "from ..errors import ActorError") == []
