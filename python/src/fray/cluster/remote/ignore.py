"""Which files of a project .gitignore files exclude, see gitignore(5). As fray's own reading of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ALWAYS = frozenset({".git", ".fray", ".venv", "__pycache__"})


@dataclass(frozen=True)
class Rule:
    """One line of a .gitignore file."""

    base: str  # where the file lies, from the project's directory
    up: str  # the project's directory as seen from the file, "" if that is not above
    pattern: re.Pattern[str]  # of a path below the file's directory
    negated: bool
    dir_only: bool

    def matches(self, path: str, is_dir: bool) -> bool:
        """Report whether the rule is about a path of the project."""
        if self.dir_only and not is_dir:
            return False
        if self.up:
            path = f"{self.up}/{path}"
        if self.base:
            path = path.removeprefix(self.base + "/")
        return self.pattern.fullmatch(path) is not None


def ignored(rules: Sequence[Rule], path: str, is_dir: bool) -> bool:
    """Report whether the last rule that matches a path excludes it."""
    for rule in reversed(rules):
        if rule.matches(path, is_dir):
            return not rule.negated
    return False


def rules_above(project: Path) -> list[Rule]:
    """Return the rules of the directories above a project, as far up as its git repository."""
    tops: list[Path] = []
    at = project
    while not (at / ".git").exists():
        if at.name == ".fray" or at.parent == at:
            return []
        tops.append(at.parent)
        at = at.parent
    rules: list[Rule] = []
    for top in reversed(tops):
        rules += _read(top / ".gitignore", "", project.relative_to(top).as_posix())
    return rules


def rules_in(project: Path, below: str) -> list[Rule]:
    """Return the rules in one directory of a project."""
    return _read(project / below / ".gitignore", below, "")


def _read(file: Path, base: str, up: str) -> list[Rule]:
    try:
        text = file.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except FileNotFoundError:
        return []
    found = (_rule(line.rstrip("\r"), base, up) for line in text.split("\n"))
    return [rule for rule in found if rule is not None]


def _rule(line: str, base: str, up: str) -> Rule | None:
    """Read one line; None for an empty one or a comment."""
    if line.startswith("#"):
        return None
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    negated = line.startswith("!")
    line = line.removeprefix("!")
    dir_only = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    glob = line.removeprefix("/") if "/" in line else f"**/{line}"
    pattern = _translate(glob)
    return Rule(base, up, pattern, negated, dir_only) if pattern else None


_TOKEN = re.compile(
    r"(?P<deep>(?<![^/])\*\*/)|(?P<all>(?<![^/])\*\*$)|(?P<star>\*+)|(?P<one>\?)|"
    r"(?P<set>\[[!^]?\]?(?:\\.|[^\]\\])*\])|\\(?P<escaped>.)|(?P<plain>[^\[\\])"
)


def _translate(glob: str) -> re.Pattern[str] | None:
    """Return the regular expression of a glob, None for one that matches nothing."""
    parts, at = [], 0
    while at < len(glob):
        token = _TOKEN.match(glob, at)
        if token is None:
            return None
        parts.append(_expression(token))
        at = token.end()
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        return None


def _expression(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "deep":
            return "(?:[^/]+/)*"
        case "all":
            return ".*"
        case "star":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "set":
            inside = token["set"][1:-1]
            negated = inside[:1] in ("!", "^")
            inside = inside[1:] if negated else inside
            return f"(?!/)[{'^' if negated else ''}{_escaped(inside)}]"
        case "escaped":
            return re.escape(token["escaped"])
        case _:
            return re.escape(token["plain"])


def _escaped(inside: str) -> str:
    """Return the inside of a set for a regular expression, where "[" and "^" mean more."""
    return re.sub(r"(?<!\\)([\[\]^&~|])", r"\\\1", inside)
