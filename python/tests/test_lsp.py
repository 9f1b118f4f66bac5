"""`fray lsp` as editors see it, by the client of pygls."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

TOP = Path(__file__).parents[2]
WAIT = 60

FRAY = """variable "corpus" {
  description = "where the 🚀 text is"
}

module "pool" {
  source = "./pool"
  size   = 3
}

job "train" {
  command = ["🚀🚀", var.corpus, module.pool.double]
}
"""

POOL = """variable "size" {
  type = number
}

output "double" {
  value = var.size * 2
}
"""


@pytest.fixture(scope="session")
def fray(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built, by scripts/test or here."""
    if built := os.environ.get("FRAY_TEST_PROGRAM"):
        return Path(built)
    program = tmp_path_factory.mktemp("bin") / "fray"
    environ = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", program, "./cmd/fray"], cwd=TOP, env=environ, check=True)
    return program


class Editor:
    """A client with one server and the texts that it has open."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client = LanguageClient("editor", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}

        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(publish)

    def document(self, name: str) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier((self.directory / name).as_uri())

    def open(self, name: str) -> None:
        text = (self.directory / name).read_text()
        self.texts[name], self.versions[name] = text, 1
        item = lsp.TextDocumentItem(self.document(name).uri, "fray", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def after(self, name: str, text: str) -> lsp.Position:
        """Return the place behind a text, in UTF-16 code units."""
        before, found, _ = self.texts[name].partition(text)
        assert found
        lines = (before + found).split("\n")
        return lsp.Position(len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)

    def type_after(self, name: str, text: str, typed: str) -> None:
        at = self.after(name, text)
        self.versions[name] += 1
        self.texts[name] = self.texts[name].replace(text, text + typed, 1)
        change = lsp.TextDocumentContentChangePartial(lsp.Range(at, at), typed)
        document = lsp.VersionedTextDocumentIdentifier(self.versions[name], self.document(name).uri)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    async def diagnostics(self, name: str) -> list[str]:
        """Return the messages of the current version of a file."""
        while True:
            params = await asyncio.wait_for(self.published.get(), WAIT)
            if params.uri == self.document(name).uri and params.version == self.versions[name]:
                return [d.message for d in params.diagnostics]


@asynccontextmanager
async def editing(fray: Path, directory: Path) -> AsyncIterator[Editor]:
    (directory / "pool").mkdir()
    (directory / "fray.hcl").write_text(FRAY)
    (directory / "pool" / "main.hcl").write_text(POOL)
    editor = Editor(directory)
    await editor.client.start_io(str(fray), "lsp", cwd=directory)
    result = await editor.client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
    assert result.server_info is not None
    assert result.server_info.name == "fray"
    editor.client.initialized(lsp.InitializedParams())
    yield editor
    await editor.client.shutdown_async(None)
    editor.client.exit(None)
    server = editor.client._server
    assert server is not None
    assert await asyncio.wait_for(server.wait(), WAIT) == 0


def run(session: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(session())


def test_session(fray: Path, tmp_path: Path) -> None:
    async def session() -> None:
        async with editing(fray, tmp_path) as editor:
            editor.open("fray.hcl")
            assert await editor.diagnostics("fray.hcl") == []

            editor.type_after("fray.hcl", '"🚀🚀", var.corpus', "x")
            (message,) = await editor.diagnostics("fray.hcl")
            assert 'Did you mean "corpus"?' in message

            items = await editor.client.text_document_completion_async(
                lsp.CompletionParams(editor.document("fray.hcl"), editor.after("fray.hcl", '🚀🚀", var.c'))
            )
            assert isinstance(items, lsp.CompletionList)
            assert [item.label for item in items.items] == ["corpus"]

            place = editor.after("fray.hcl", "module.pool.dou")
            at = lsp.DefinitionParams(editor.document("fray.hcl"), place)
            found = await editor.client.text_document_definition_async(at)
            assert isinstance(found, lsp.Location)
            assert found.uri == editor.document("pool/main.hcl").uri
            assert found.range.start == lsp.Position(4, 7)

            hover = await editor.client.text_document_hover_async(
                lsp.HoverParams(editor.document("fray.hcl"), editor.after("fray.hcl", "\n  comm"))
            )
            assert hover is not None
            assert isinstance(hover.contents, lsp.MarkupContent)
            assert "the program and its arguments" in hover.contents.value

            editor.type_after("fray.hcl", "  size", "  ")
            edits = await editor.client.text_document_formatting_async(
                lsp.DocumentFormattingParams(editor.document("fray.hcl"), lsp.FormattingOptions(2, True))
            )
            assert edits is not None
            assert [edit.new_text for edit in edits] == ["  size   = 3\n"]

            symbols = await editor.client.text_document_document_symbol_async(
                lsp.DocumentSymbolParams(editor.document("fray.hcl"))
            )
            assert symbols is not None
            assert [symbol.name for symbol in symbols] == ["var.corpus", "module.pool", "job.train"]

    run(session)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs descriptors of processes")
def test_killed_client(fray: Path, tmp_path: Path) -> None:
    """A server ends when its client is killed."""
    script = (
        "import subprocess\n"
        f"server = subprocess.Popen([{str(fray)!r}, 'lsp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(server.pid, flush=True)\n"
        "server.wait()\n"
    )
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path, text=True)
    assert client.stdout is not None
    server = int(client.stdout.readline())
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    try:
        waiting = os.pidfd_open(server)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([waiting], [], [], WAIT)
    os.close(waiting)
    assert ended, "the server is still there"
