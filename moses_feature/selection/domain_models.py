"""KenLM models for data selection: read, or estimated from texts by `lmplz`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from moses_feature.moses.language_model import LOG_10, is_binary, load_kenlm
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import MosesFeatureError, UsageError

ARPA = b"\\data\\"
FEWEST_IN_DOMAIN = 2
"""The least count of a word of the in-domain vocabulary (Moore and Lewis 2010, section 3)."""
LINES_SHOWN = 5


class DomainModel:
    """A KenLM model as a measure of sentences."""

    def __init__(self, path: str | Path) -> None:
        self._model = load_kenlm(path)

    def cross_entropy(self, words: list[bytes]) -> float:
        """Return -log p per word in nats, the end of the sentence counted as a word."""
        text = b" ".join(words).decode(errors="replace")
        return -float(self._model.score(text)) * LOG_10 / (len(words) + 1)

    def of_text(self, sentences: Iterable[list[bytes]], path: str) -> float:
        """Return -log p per word of a text, in nats.

        Raises:
            MosesFeatureError: it has no words.
        """
        total, words, ends = 0.0, 0, 0
        for sentence in sentences:
            total += self.cross_entropy(sentence) * (len(sentence) + 1)
            words += len(sentence)
            ends += 1
        if not words:
            raise no_words(path)
        return total / (words + ends)


def is_model(path: str) -> bool:
    """Return whether a file is a KenLM model (binary, or ARPA, compressed or not), not a text."""
    if is_binary(Path(path)):
        return True
    with LineReader(path) as reader:
        first = next((line for line in reader if line.strip()), b"")
    return first.strip() == ARPA


def read_sentences(path: str) -> Iterable[list[bytes]]:
    """Yield the words of each line."""
    with LineReader(path) as reader:
        for line in reader:
            yield tokens(line)


def vocabulary_of(path: str) -> set[bytes]:
    """Return the words that occur twice or more in a text; all words if there are none."""
    counts = Counter(word for words in read_sentences(path) for word in words)
    if not counts:
        raise no_words(path)
    frequent = {word for word, count in counts.items() if count >= FEWEST_IN_DOMAIN}
    return frequent or set(counts)


def no_words(path: str) -> MosesFeatureError:
    """Return the error of a text without words."""
    return MosesFeatureError(f"{path}: expected words, found none")


class Estimator:
    """Estimates models with `lmplz`, all with one vocabulary.

    Args:
        vocabulary: the words that the models know; None for all.
        order: words of an n-gram.

    Raises:
        UsageError: there is no `lmplz` on the PATH.
    """

    def __init__(self, vocabulary: set[bytes] | None, order: int) -> None:
        binary = shutil.which("lmplz")
        if binary is None:
            raise UsageError(
                "no lmplz on the PATH to estimate a language model with: give ARPA or binary "
                "files of KenLM, or put lmplz (of KenLM or of Moses) on the PATH"
            )
        self._binary = binary
        self._vocabulary = vocabulary
        self._order = order

    def model(self, sentences: Iterable[list[bytes]], path: str) -> DomainModel:
        """Return a model of some sentences.

        Args:
            sentences: as words.
            path: the file that they are from, for errors.

        Raises:
            MosesFeatureError: the sentences have no words, or `lmplz` fails.
        """
        with tempfile.TemporaryDirectory(prefix="moses-feature-lm-") as folder:
            text, arpa, words = (Path(folder) / name for name in ("text", "arpa", "words"))
            words_written = 0
            with text.open("wb") as file:
                for sentence in sentences:
                    file.write(b" ".join(sentence) + b"\n")
                    words_written += len(sentence)
            if not words_written:
                raise no_words(path)
            command = [
                self._binary,
                "-o",
                str(self._order),
                "--text",
                str(text),
                "--arpa",
                str(arpa),
                "-S",
                "20%",
                "-T",
                folder + os.sep,
                "--discount_fallback",
                "--skip_symbols",
            ]
            if self._vocabulary is not None:
                words.write_bytes(b"\n".join(sorted(self._vocabulary)) + b"\n")
                command += ["--limit_vocab_file", str(words)]
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
            if done.returncode != 0:
                said = done.stderr.decode(errors="replace").strip().splitlines()[-LINES_SHOWN:]
                raise MosesFeatureError(
                    f"{self._binary} ended with exit code {done.returncode}: " + "\n".join(said)
                )
            return DomainModel(arpa)
