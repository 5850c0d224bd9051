"""Raw text, prepared as Moses' scripts do it: punctuation, tokens, case (by sacremoses)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moses_feature.building.settings import Case
from moses_feature.moses.ini import SYSTEM
from moses_feature.moses.lines import LineReader
from moses_feature.moses.system_directory import WHAT
from moses_feature.runtime.errors import FormatError, MosesFeatureError, install
from moses_feature.runtime.files import Json, open_output, whole_file
from moses_feature.runtime.json_files import member


@dataclass(frozen=True)
class Preparation:
    """What is done to the text of a language.

    Attributes:
        language: its code, such as `en`.
        case: keep it, lower all letters, or truecase: give the first word of a sentence the case
            that it usually has.
        truecaser: the file of the trained truecaser, if there is one.
    """

    language: str
    case: Case
    truecaser: str | None = None


class Preparer:
    """Prepares lines of raw text; free of files but for the truecaser.

    Raises:
        MosesFeatureError: sacremoses is not installed.
    """

    def __init__(self, preparation: Preparation) -> None:
        check_available()
        from sacremoses import MosesPunctNormalizer, MosesTokenizer, MosesTruecaser

        self._case = preparation.case
        self._normalizer: Any = MosesPunctNormalizer(lang=preparation.language)
        self._tokenizer: Any = MosesTokenizer(lang=preparation.language)
        self._truecaser: Any = None
        if preparation.truecaser is not None:
            self._truecaser = MosesTruecaser(preparation.truecaser)

    def tokens(self, line: str) -> str:
        """Return the tokens of a line, one space between them, in their own case."""
        normal = self._normalizer.normalize(line)
        return str(self._tokenizer.tokenize(normal, return_str=True, escape=True))

    def __call__(self, line: str) -> str:
        """Return a line as it is in the texts of the system."""
        tokens = self.tokens(line)
        if self._case == "lower":
            return tokens.lower()
        if self._truecaser is not None and tokens:
            return str(self._truecaser.truecase(tokens, return_str=True))
        return tokens


def check_available() -> None:
    """Check that sacremoses is installed.

    Raises:
        MosesFeatureError: it is not.
    """
    if find_spec("sacremoses") is None:
        raise MosesFeatureError(
            f"raw text needs a package: {install('build')} (or give text that is tokenised already)"
        )


class TextPreparer:
    """Prepares a whole text; it can do so in a process of its own.

    Args:
        language: the code of the language.
        case: what is done to letters.
    """

    def __init__(self, language: str, case: Case) -> None:
        self._language = language
        self._case: Case = case

    def prepare(self, text: str, output: Path, truecaser: Path) -> Json:
        """Write the prepared text; return the preparation as JSON.

        Args:
            text: the raw text, a sentence on each line, UTF-8.
            output: the prepared text.
            truecaser: where a trained truecaser is kept, if one is trained.

        Raises:
            FormatError: a line that is not UTF-8.
        """
        kept: str | None = None
        if self._case == "truecase":
            self._train(text, truecaser)
            kept = str(truecaser)
        preparer = Preparer(Preparation(self._language, self._case, kept))
        with LineReader(text) as reader, open_output(output) as file:
            file.writelines(preparer(line).encode() + b"\n" for line in decoded(reader))
        named = None if kept is None else truecaser.name
        return {"language": self._language, "case": self._case, "truecaser": named}

    def _train(self, text: str, truecaser: Path) -> None:
        from sacremoses import MosesTruecaser

        plain = Preparer(Preparation(self._language, "keep"))
        with LineReader(text) as reader:
            documents = [plain.tokens(line).split() for line in decoded(reader)]
        trained: Any = MosesTruecaser()
        trained.train([line for line in documents if line])
        with whole_file(truecaser) as temporary:
            trained.save_model(str(temporary))


def decoded(reader: LineReader) -> Iterable[str]:
    """Yield lines as text, without their ends.

    Raises:
        FormatError: a line that is not UTF-8.
    """
    for line in reader:
        try:
            yield line.rstrip(b"\r\n").decode()
        except UnicodeDecodeError:
            number = reader.line_number
            raise FormatError(reader.path, "UTF-8", "bytes that are not", number) from None


def preparation_of(content: Json, side: str, directory: Path) -> Preparation:
    """Return how a system's texts of a side (`source`, `target`) were prepared.

    Raises:
        MosesFeatureError: the system was built from tokenised texts.
    """
    path = directory / SYSTEM
    of_sides = member({"preparation": {}, **content}, "preparation", dict[str, Any], path, WHAT)
    found = member({side: None, **of_sides}, side, dict[str, Any] | None, path, WHAT)
    if not found:
        raise MosesFeatureError(
            f"{directory}: expected a system built with --raw, found one of tokenised texts: "
            "tokenise this text as they were (translate and serve then take --tokens)"
        )
    language, case = (member(found, name, str, path, WHAT) for name in ("language", "case"))
    truecaser = member(found, "truecaser", str | None, path, WHAT)
    trained = None if truecaser is None else str(directory / truecaser)
    return Preparation(language, case, trained)
