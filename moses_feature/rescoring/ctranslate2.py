"""Models of CTranslate2 as scorers of n-best lists and as translators; free of torch.

Any converted sequence-to-sequence model (OPUS-MT, NLLB, Marian, OpenNMT, fairseq), with its models
of sentencepiece beside it and a file that says how its text is made of tokens:

    {"source_language": "en", "target_language": "fr",
     "source_pieces": "source.spm", "target_pieces": "target.spm",
     "source_suffix": ["</s>"]}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from moses_feature.networks.files import CONFIG, CTRANSLATE2_WEIGHTS
from moses_feature.networks.pieces import FEWEST_TO_TELL, is_known
from moses_feature.phrases.generation.prefixes import longest_translation
from moses_feature.rescoring.nbest import BadTranslationError, Lists
from moses_feature.rescoring.source import OwnSource, SourceText
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError, install
from moses_feature.runtime.json_files import read_json, record
from moses_feature.sentences.settings import MOST_PIECES

CTRANSLATE2 = "ctranslate2"
TEXT = "moses-feature.json"
WHAT = "how text is made for a model of CTranslate2"
PIECES_TOGETHER = 4096
"""Pieces of a batch, padding included."""
BEAM = 5
LEAST_PIECES = 0.5
"""The least share of pieces that the model's vocabulary has."""
_NEVER_IN_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NEVER_IN_TOKENS = re.compile("[\x00-\x1f\x7f|]")


@dataclass(frozen=True)
class TextOptions:
    """How the text of a model is made of tokens.

    Attributes:
        source_language, target_language: codes by which tokens are put together as text; None if
            the model reads or writes tokens as they stand.
        source_pieces, target_pieces: models of sentencepiece, in the model's directory.
        source_prefix, source_suffix: pieces around a source sentence, such as its language and
            `</s>`.
        target_prefix: pieces before a target sentence, such as its language; they are not scored.
        compute_type: of the products, such as float32 or int8.
        sha256: digests of the model's files, by name; none of other programs' models.
    """

    source_pieces: str
    target_pieces: str
    source_language: str | None = None
    target_language: str | None = None
    source_prefix: tuple[str, ...] = ()
    source_suffix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()
    compute_type: str = "float32"
    sha256: Mapping[str, str] = field(default_factory=dict)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class TooManyPiecesError(Exception):
    """A pair with a sentence of too many pieces.

    Args:
        number: the index of the pair.
        found: the number of pieces.
    """

    def __init__(self, number: int, found: int) -> None:
        super().__init__(f"{MOST_PIECES} pieces at most", f"{found}")
        self.number = number


class CTranslate2Model:
    """A converted model.

    Args:
        directory: the model, its pieces and how its text is made.
        threads: threads of a batch.

    Raises:
        UsageError: CTranslate2, or sacremoses where it is needed, is not installed.
        MosesFeatureError: a file is missing.
        FormatError: a file is damaged.
    """

    def __init__(self, directory: Path, threads: int = 1) -> None:
        self._directory = directory
        try:
            from ctranslate2 import Translator
        except ImportError:
            raise UsageError(
                f"{directory} is a model of CTranslate2: {install('ctranslate2')}"
            ) from None
        path = directory / TEXT
        if not path.is_file():
            raise MosesFeatureError(
                f"{path}: expected {WHAT}, such as "
                '{"source_language": "en", "target_language": "fr", "source_pieces": '
                '"source.spm", "target_pieces": "target.spm", "source_suffix": ["</s>"]}, '
                "found no such file"
            )
        try:
            self._options = record(TextOptions, read_json(path, WHAT), path, WHAT)
            json.dumps(asdict(self._options), ensure_ascii=False).encode()  # not half a character
        except (TypeError, UnicodeEncodeError) as error:
            raise FormatError(path, WHAT, f"{error}") from None
        options = self._options
        for name in (CTRANSLATE2_WEIGHTS, CONFIG, *options.sha256):
            if not (directory / name).is_file():
                raise MosesFeatureError(
                    f"{directory / name}: expected a file of CTranslate2's model"
                )
        for name, digest in options.sha256.items():
            if sha256_of(directory / name) != digest:
                raise FormatError(directory / name, "the file that was exported", "another one")
        self.source = _Pieces(directory, "source", options.source_pieces, options.source_language)
        self.target = _Pieces(directory, "target", options.target_pieces, options.target_language)
        try:
            self._translator: Any = Translator(
                str(directory), intra_threads=threads, compute_type=options.compute_type
            )
        except (RuntimeError, ValueError) as error:
            raise FormatError(directory, "a model of CTranslate2", f"{error}") from error

    def _read(self, words: Sequence[bytes]) -> list[str]:
        options = self._options
        pieces = self.source.pieces(words)
        return [*options.source_prefix, *pieces, *options.source_suffix]

    def log_probs(self, pairs: Sequence[tuple[Sequence[bytes], Sequence[bytes]]]) -> list[float]:
        """Return log p, natural logs, of sentences and their translations, END included.

        Raises:
            TooManyPiecesError: a sentence has too many pieces.
        """
        prefix = list(self._options.target_prefix)
        split = [(tuple(self._read(of)), tuple(self.target.pieces(words))) for of, words in pairs]
        for number, sides in enumerate(split):
            if (found := max(map(len, sides))) > MOST_PIECES:
                raise TooManyPiecesError(number, found)
        distinct = list(dict.fromkeys(split))
        scored = self._done_by(
            self._translator.score_batch,
            [list(read) for read, _ in distinct],
            [[*prefix, *written] for _, written in distinct],
            max_batch_size=PIECES_TOGETHER,
            batch_type="tokens",
            max_input_length=0,
            offset=len(prefix),
        )
        scores = {pair: float(sum(of.log_probs)) for pair, of in zip(distinct, scored, strict=True)}
        return [scores[pair] for pair in split]

    def length(self, words: Sequence[bytes]) -> int:
        """Return the number of pieces of a sentence."""
        return len(self._read(words))

    def translate(self, sentences: Sequence[Sequence[bytes]], beam: int = BEAM) -> list[str]:
        """Return the best translation of each sentence: text, or tokens if it writes them.

        It has at most 10 pieces more than twice those of the longest sentence.

        Raises:
            MosesFeatureError: the model has fewer positions than a sentence has pieces.
        """
        read = [self._read(words) for words in sentences]
        prefix = list(self._options.target_prefix)
        found = self._done_by(
            self._translator.translate_batch,
            read,
            target_prefix=[prefix] * len(read) if prefix else None,
            beam_size=beam,
            max_batch_size=PIECES_TOGETHER,
            batch_type="tokens",
            max_input_length=0,
            max_decoding_length=longest_translation(max(map(len, read), default=0)),
        )
        texts = [self.target.text(of.hypotheses[0][len(prefix) :]) for of in found]
        return [text if words else "" for text, words in zip(texts, sentences, strict=True)]

    def _done_by(self, work: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Return what CTranslate2 computes.

        Raises:
            MosesFeatureError: it cannot, as with fewer positions than a sentence has pieces.
        """
        try:
            return work(*given, **options)
        except (RuntimeError, ValueError) as error:
            raise MosesFeatureError(f"{self._directory}: {error}") from None


class _Pieces:
    """The pieces of one side, source or target."""

    def __init__(self, directory: Path, side: str, name: str, language: str | None) -> None:
        path = directory / name
        if not path.is_file():
            raise MosesFeatureError(f"{path}: expected a model of sentencepiece, found none")
        try:
            self._processor = SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, ValueError) as error:
            raise FormatError(path, "a model of sentencepiece", f"{error}") from error
        self._check_pieces(directory, side, path)
        self._language = language

    def _check_pieces(self, directory: Path, side: str, path: Path) -> None:
        """Check that most pieces are in the vocabulary of CTranslate2's model.

        Raises:
            FormatError: they are not: the model of sentencepiece is that of another one.
        """
        names = (f"{side}_vocabulary.json", "shared_vocabulary.json")
        vocabulary = next((directory / name for name in names if (directory / name).exists()), None)
        if vocabulary is None:  # an older model has another file
            return
        try:
            known = set(json.loads(vocabulary.read_bytes()))
        except (ValueError, TypeError):  # CTranslate2 will refuse it
            return
        of = self._processor
        pieces = [
            of.id_to_piece(number)
            for number in range(of.get_piece_size())
            if not (of.is_control(number) or of.is_unknown(number) or of.is_byte(number))
        ]
        there = sum(piece in known for piece in pieces)
        if there < LEAST_PIECES * len(pieces):
            expected = f"a model of sentencepiece with the pieces of {vocabulary.name}"
            raise FormatError(path, expected, f"{there:,} of its {len(pieces):,} pieces there")

    @property
    def can_tell(self) -> bool:
        """Whether there are so many pieces that few words of the language have many."""
        return bool(self._processor.get_piece_size() >= FEWEST_TO_TELL)

    def knows(self, word: bytes) -> bool:
        """Return whether a word is spelt in few pieces, as words of its language are."""
        return is_known(word, len(self.pieces([word])))

    @cached_property
    def _detokenizer(self) -> Any:
        try:
            from sacremoses import MosesDetokenizer
        except ImportError:
            raise UsageError(f"text is made of tokens by sacremoses: {install('build')}") from None
        return MosesDetokenizer(lang=self._language)

    def pieces(self, words: Sequence[bytes]) -> list[str]:
        """Return the pieces of a sentence, given as tokens."""
        text = b" ".join(words).decode(errors="replace")
        if self._language is not None:
            text = self._detokenizer.detokenize(text.split(), unescape=True)
        pieces: list[str] = self._processor.encode(text, out_type=str)
        return pieces

    def text(self, pieces: Sequence[str]) -> str:
        """Return the text that pieces spell; what would end a line or a word becomes U+FFFD."""
        text = str(self._processor.decode(list(pieces)))
        return (_NEVER_IN_TEXT if self._language else _NEVER_IN_TOKENS).sub(
            "\N{REPLACEMENT CHARACTER}", text
        )


class CTranslate2Feature:
    """log p of a translation under a model of CTranslate2; see `SentenceScorer`.

    Args:
        name: the name of the feature.
        directory: the model directory.
        source: the source text.
    """

    def __init__(self, name: str, directory: str, source: SourceText) -> None:
        self.name = name
        self._model = CTranslate2Model(Path(directory))
        self._source = source
        self._own = OwnSource(name, source.name)
        self._known = source.known_to(directory, (self._model.source, self._model.target))

    def scores(self, lists: Lists) -> list[float]:
        """Return log p of each translation.

        Raises:
            BadTranslationError: one has too many pieces, or a word alignment that does not fit.
            MosesFeatureError: the model knows too few words.
        """
        pairs, firsts = self._source.pairs(lists)
        try:
            found = self._model.log_probs([(source.split(), of.words) for source, of in pairs])
        except TooManyPiecesError as error:
            raise BadTranslationError(pairs[error.number][1], *error.args) from None
        for sentence, first in firsts:
            words, beside = pairs[first][1].words, self._source.beside(sentence)
            self._known.add(pairs[first][0].split(), words)
            if words and not self._own.is_done and beside is not None:
                (other,) = self._model.log_probs([(beside.split(), words)])
                self._own.add(found[first], other)
        return found

    def finish(self) -> None:
        """Check that lists, source and model belong together."""
        self._source.finish()
        self._known.check()
        self._own.finish()
