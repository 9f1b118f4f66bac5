"""picture.py TITLE ANSI SVG draws what a terminal shows, given with its ANSI escapes, as an SVG."""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

title, ansi, svg = sys.argv[1:]
shown = Text.from_ansi(f"$ {title}\n{Path(ansi).read_text().rstrip()}")
console = Console(record=True, width=max(line.cell_len for line in shown.split()) + 1, file=io.StringIO())
console.print(shown)
console.save_svg(svg, title=title)
