"""A character n-gram language model, trained on a text at start."""

import random
import re
from collections import Counter, defaultdict
from pathlib import Path

ORDER = 6  # characters that the next one depends on


def normalise(text: str) -> str:
    """What the model sees of a text: its words and punctuation, single spaces between."""
    return re.sub(r"\s+", " ", text)


class Model:
    def __init__(self, corpus: Path):
        text = normalise(corpus.read_text(encoding="utf-8"))
        successors: defaultdict[str, list[str]] = defaultdict(list)
        for i in range(len(text) - ORDER):
            successors[text[i : i + ORDER]].append(text[i + ORDER])
        self._successors = dict(successors)

    def complete(self, prompt: str, length: int) -> str:
        """Continue a prompt by up to length characters, drawn as often as the text has them.

        The same prompt gets the same answer from every replica. A prompt whose
        end the text does not have gets an empty one.
        """
        rng = random.Random(prompt)
        window = normalise(prompt)[-ORDER:]
        out = []
        while len(out) < length and window in self._successors:
            counts = Counter(self._successors[window])
            out.append(rng.choices(sorted(counts), [counts[c] for c in sorted(counts)])[0])
            window = window[1:] + out[-1]
        return "".join(out)
