"""Raw text, prepared as Moses' scripts do it: punctuation, tokens, case (by sacremoses)."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from moses_feature.building.settings import Case
from moses_feature.building.spelling import Spelling
from moses_feature.moses.ini import SYSTEM
from moses_feature.moses.lines import LineReader
from moses_feature.moses.system_directory import WHAT, changed_files
from moses_feature.runtime.errors import FormatError, MosesFeatureError, install
from moses_feature.runtime.files import Json, open_output, whole_file
from moses_feature.runtime.json_files import member, read_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Preparation:
    """What is done to the text of a language.

    Attributes:
        language: its code, such as `en`.
        case: keep it, lower all letters, or truecase: give the first word of a sentence the case
            that it usually has.
        truecaser: the file of the trained truecaser, if there is one.
        protects: letters and their marks are composed where they can be (NFC), and addresses and
            words with other marks stay whole. Systems of version 0.2 do not do so.
        letters: symbols that are letters, of a language without rules: an apostrophe between
            letters, any other one wherever it touches a letter.
        known: the files of the texts that a system was built of, of the source and the target
            language; unknown words are spelt like those in them. None for text to build of.
    """

    language: str
    case: Case
    truecaser: str | None = None
    protects: bool = True
    letters: str = ""
    known: tuple[str, str] | None = None


_LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
_IN_ADDRESS = rf"(?:(?!,https?:)[!#-&(-;=?@{_LATIN}\[\]_~|])"
ADDRESSES = (
    rf"(?<!\w)(?:(?:https?|ftp)://|www\.){_IN_ADDRESS}*[{_LATIN}0-9/_=]",
    r"(?<![\w.+-])[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
)
"""Patterns of what stays whole: addresses of pages and of mail."""


class Preparer:
    """Prepares lines of raw text; free of files but for the truecaser and the known texts.

    Raises:
        MosesFeatureError: sacremoses is not installed, or a file cannot be read.
    """

    def __init__(self, preparation: Preparation) -> None:
        check_available()
        from sacremoses import MosesPunctNormalizer, MosesTokenizer, MosesTruecaser

        self._case = preparation.case
        self._protects = preparation.protects
        self._letters = preparation.letters
        self._torn: dict[str, bool] = {}
        self._normalizer: Any = MosesPunctNormalizer(lang=preparation.language)
        self._tokenizer: Any = MosesTokenizer(lang=preparation.language)
        self._truecaser: Any = None
        if preparation.truecaser is not None:
            self._truecaser = MosesTruecaser(preparation.truecaser)
        self._spelling: Spelling | None = None
        if preparation.known is not None:
            self._spelling = Spelling(*map(Path, preparation.known))

    def tokens(self, line: str) -> str:
        """Return the tokens of a line, one space between them, in their own case."""
        given: dict[str, Any] = {"return_str": True, "escape": True}
        line = line.removeprefix("\ufeff")  # a byte order mark
        if not self._protects:
            return str(self._tokenizer.tokenize(self._normalizer.normalize(line), **given))
        normal = self._normalizer.normalize(unicodedata.normalize("NFC", line))
        patterns = [*ADDRESSES, *self._words_to_keep(normal)]
        found = sum(len(re.findall(pattern, normal, re.IGNORECASE)) for pattern in patterns)
        if 0 < found <= self._tokenizer.MAX_PROTECTED_TOKENS:
            given["protected_patterns"] = patterns
        return str(self._tokenizer.tokenize(normal, **given))

    def _words_to_keep(self, line: str) -> list[str]:
        """Return a pattern, if one is needed, of words that the tokeniser would tear apart."""
        marks = re.escape("".join(mark for mark in sorted(set(line)) if self._is_torn(mark)))
        letter = f"[\\w{marks}]"
        words = [f"(?<!{letter})(?:{letter}+')+{letter}+"] if APOSTROPHE in self._letters else []
        if marks:
            words.append(f"{letter}*[{marks}]{letter}*")
        return ["|".join(words)] if words else []

    def _is_torn(self, character: str) -> bool:
        """Return whether the tokeniser takes a mark, or a symbol that is a letter, off its word."""
        if character not in self._torn:
            is_part = unicodedata.category(character).startswith("M") or character in self._letters
            word = f"a{character}a"
            is_torn = character != APOSTROPHE and len(self._tokenizer.tokenize(word)) > 1
            self._torn[character] = is_part and is_torn
        return self._torn[character]

    def __call__(self, line: str) -> str:
        """Return a line as it is in the texts of the system."""
        cased = self._cased(self.tokens(line))
        return self._spelling(cased) if self._spelling is not None else cased

    def spelt(self) -> dict[str, str]:
        """Return the words so far that were spelt otherwise, and how they last were."""
        return self._spelling.spelt() if self._spelling is not None else {}

    def _cased(self, tokens: str) -> str:
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
        plain = Preparation(self._language, "keep", letters=letters_of(text, self._language))
        for warning in oddities(text, self._language, plain.letters):
            logger.warning("%s", warning)
        kept: str | None = None
        if self._case == "truecase":
            _train_truecaser(text, plain, truecaser)
            kept = str(truecaser)
        preparer = Preparer(replace(plain, case=self._case, truecaser=kept))
        with LineReader(text) as reader, open_output(output) as file:
            file.writelines(preparer(line).encode() + b"\n" for line in decoded(reader))
        named = None if kept is None else truecaser.name
        return {
            "language": self._language,
            "case": self._case,
            "truecaser": named,
            "protects": True,
            "letters": plain.letters,
        }


def _train_truecaser(text: str, plain: Preparation, truecaser: Path) -> None:
    from sacremoses import MosesTruecaser

    preparer = Preparer(plain)
    with LineReader(text) as reader:
        documents = [preparer.tokens(line).split() for line in decoded(reader)]
    trained: Any = MosesTruecaser()
    trained.train([line for line in documents if line])
    with whole_file(truecaser) as temporary:
        trained.save_model(str(temporary))


def has_rules(language: str) -> bool:
    """Return whether there are rules of tokenising for a language, by its code."""
    from sacremoses.corpus import NonbreakingPrefixes

    return language in set(NonbreakingPrefixes().available_langs.values())


APOSTROPHE = "'"
NO_LETTERS = "/-'’‘´`"
"""Symbols between words; apostrophes, which the tokeniser writes as one."""
OFTEN, BETWEEN = 0.01, 0.15
"""A symbol is a letter if so many occur for each line, and such a share of them between letters:
0.21 of the letters i of Hñähñu do, 0.11 of the hyphens of Rarámuri, less of other symbols."""
PAIRED = "Ps", "Pe", "Pi", "Pf"
"""Unicode's categories of brackets and quotation marks."""
_LETTER = r"[^\W\d_]"
_SYMBOL = re.compile(r"[^\w\s]|_")
_BETWEEN = re.compile(f"(?<={_LETTER})(?:{_SYMBOL.pattern})(?={_LETTER})")


def letters_of(text: str, language: str) -> str:
    """Return the symbols that are letters in a raw text, if its language has no rules.

    These are the apostrophe, and those that often stand between letters, such as + in Wixárika.
    """
    if has_rules(language):
        return ""
    lines = 0
    symbols, between = Counter[str](), Counter[str]()
    with LineReader(text) as reader:
        for line in decoded(reader):
            lines += 1
            without_marks = "".join(of for of in line if not unicodedata.combining(of))
            symbols.update(_SYMBOL.findall(without_marks))
            between.update(_BETWEEN.findall(without_marks))
    found = {
        symbol
        for symbol, count in symbols.items()
        if count >= OFTEN * lines
        and between[symbol] >= BETWEEN * count
        and unicodedata.category(symbol) not in PAIRED
    }
    return APOSTROPHE + "".join(sorted(found.difference(NO_LETTERS)))


def oddities(text: str, language: str, symbols: str) -> Iterator[str]:
    """Yield what a user should know of a raw text and its language before a system is built.

    Args:
        text: the raw text.
        language: its code.
        symbols: those that are letters; see `letters_of`.
    """
    if not has_rules(language):
        apostrophes = re.compile(r"\w['’]\w")
        with LineReader(text) as reader:
            lines = sum(bool(apostrophes.search(line)) for line in decoded(reader))
        code = language.lower().partition("-")[0]
        yield (
            f"{text}: there are no rules for the language {language!r} (expected a code such as "
            f"{code if has_rules(code) else 'en'}): abbreviations are those of English"
            + (
                f", and apostrophes within words are letters ({lines:,} lines). Where they end "
                "words, as in French, give the code fr or it; write ʼ (U+02BC) for one that is the "
                "first or last letter of a word"
                if lines
                else ""
            )
        )
        if others := " ".join(symbols.replace(APOSTROPHE, "")):
            yield f"{text}: taken as letters, as they often stand between letters: {others}"
    letters: Counter[str] = Counter()
    with LineReader(text) as reader:
        for line in islice(decoded(reader), LOOKED_AT):
            letters.update(character for character in line if character.isalpha())
    of_scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        of_scripts[unicodedata.name(letter, "").partition(" ")[0]] += count
    for script in WITHOUT_SPACES:
        if of_scripts[script] > MUCH * letters.total():
            yield (
                f"{text}: {script.capitalize()} letters: this script has no spaces between words; "
                "split the text into words first, by another program"
            )


LOOKED_AT, MUCH = 2_000, 0.3
WITHOUT_SPACES = ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "CJK", "HIRAGANA")


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


def is_of_raw_text(built: Path | None) -> bool:
    """Return whether a system was built of raw text."""
    if built is None or not (built / SYSTEM).is_file():
        return False
    return bool(read_json(built / SYSTEM, WHAT).get("preparation"))


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
    protects = member({"protects": False, **found}, "protects", bool, path, WHAT)
    letters = member({"letters": "", **found}, "letters", str, path, WHAT)
    truecaser = member(found, "truecaser", str | None, path, WHAT)
    known = member({"known": None, **found}, "known", tuple[str, str] | None, path, WHAT)
    text = "the text"

    def made(name: str, what: str) -> str:
        file = directory / name
        if file.parent != directory or not file.is_file():
            raise MosesFeatureError(f"{file}: expected {what} of the system, found none")
        for changed, instead in changed_files(directory, content, {name}):
            raise FormatError(changed, f"{what} that was made with the system", instead)
        return str(file)

    return Preparation(
        language,
        case,
        None if truecaser is None else made(truecaser, "the truecaser"),
        protects,
        letters,
        None if known is None else (made(known[0], text), made(known[1], text)),
    )
