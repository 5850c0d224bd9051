"""Subwords: pieces of words, learnt by byte-pair encoding (Sennrich et al. 2016); free of torch.

sentencepiece learns and splits. A piece that begins a word begins with a mark; characters that no
piece has are spelt in bytes, of which each is a piece, so that no word is unknown.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from moses_feature.networks.vocabulary import SYMBOLS, Vocabulary, is_utf8
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.runtime.files import write_whole

logger = logging.getLogger(__name__)

PIECES = ".pieces"
"""The suffix of sentencepiece's model beside a vocabulary, instead of its own."""
MARK = "▁"
FIRST_BYTE, BYTES = len(SYMBOLS), 256
_BYTES = tuple(b"<0x%02X>" % byte for byte in range(BYTES))
NEVER = frozenset(range(33)) | {127, ord("|")}
"""Bytes that no word has: control characters, the blank, the bar of Moses' formats."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_AS_BLANKS = str.maketrans({MARK: " ", "\u2585": " "})
"""sentencepiece means them for itself, and leaves out lines of the second one."""
MOST_BYTES = 1 << 30
"""Of a line to learn from; the default of sentencepiece leaves out what is longer than 4,192."""
FEWEST_PIECES = 300
FEWEST_TO_TELL = 4000
"""With fewer pieces, many words of their own language are spelt in many: with 1,000 for both sides,
what `is_known` takes for known is 0.41 (Guarani) to 0.61 (Hñähñu) of them, and 0.49 (Hñähñu) with
2,000 for five languages."""
SENTENCES = 2_000_000
"""The most sentences to learn from; of a larger text, a sample of so many."""


@dataclass(frozen=True)
class PieceVocabulary(Vocabulary):
    """A vocabulary of pieces, into which words are split.

    Attributes:
        shortlist: the pieces.
        model: sentencepiece's model, as it writes it.
    """

    model: bytes = field(default=b"", repr=False)
    _known: dict[bytes, list[int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def _processor(self) -> SentencePieceProcessor:
        return SentencePieceProcessor(model_proto=self.model)

    def pieces(self, word: bytes) -> list[int]:
        """Return the ids of the pieces of a word."""
        found = self._known.get(word)
        if found is None:
            found = self._known[word] = self._split(word)
        return found

    def _split(self, word: bytes) -> list[int]:
        try:
            ids: list[int] = self._processor.encode(word.decode())
        except UnicodeDecodeError:
            ids = []
        if self.words(ids) == [word]:
            return ids
        return [self.index[MARK.encode()], *(FIRST_BYTE + byte for byte in word)]

    def ids(self, words: Iterable[bytes]) -> list[int]:
        """Return the ids of the pieces of words, the end-of-phrase symbol not included."""
        return [piece for word in words for piece in self.pieces(word)]

    def words(self, ids: Sequence[int]) -> list[bytes]:
        """Return the words that pieces spell.

        Bytes that no word can have (a network may write them) become U+FFFD.
        """
        mark = MARK.encode()
        words: list[bytes] = []
        for number in ids:
            piece = self.spelling(number)
            begins = piece.startswith(mark) and not self.is_byte(number)
            if begins or not words:
                words.append(piece.removeprefix(mark) if begins else piece)
            else:
                words[-1] += piece
        return [word for word in words if word]

    def split(self, words: Iterable[bytes]) -> list[bytes]:
        """Return the pieces of words, as they stand in the vocabulary."""
        return super().words(self.ids(words))

    def spelling(self, number: int) -> bytes:
        """Return what a piece spells, with the mark if it begins a word.

        Bytes that no word can have become U+FFFD.
        """
        if self.is_byte(number):
            byte = number - FIRST_BYTE
            return REPLACEMENT if byte in NEVER else bytes([byte])
        if number < len(SYMBOLS):
            return SYMBOLS[number]
        return self.shortlist[number - len(SYMBOLS)]

    @staticmethod
    def is_byte(number: int) -> bool:
        """Return whether a piece is a single byte."""
        return FIRST_BYTE <= number < FIRST_BYTE + BYTES

    def lengths(self, words: Iterable[bytes]) -> list[int]:
        """Return the number of pieces of each word."""
        return [len(self.pieces(word)) for word in words]

    def knows(self, word: bytes) -> bool:
        """Return whether a word is spelt in few pieces, as words of its language are."""
        return is_known(word, len(self.pieces(word)))

    @property
    def can_tell(self) -> bool:
        """Whether there are so many pieces that few words of the language have many."""
        return len(self) >= FEWEST_TO_TELL

    def save(self, path: Path) -> None:
        """Write the pieces, one a line, and sentencepiece's model beside them."""
        super().save(path)
        write_whole(path.with_suffix(PIECES), self.model)

    def content(self) -> bytes:
        """Return the pieces, and the rules by which words are split."""
        return super().content() + self.model


def is_known(word: bytes, pieces: int) -> bool:
    """Return whether so few pieces spell a word as do those of its language."""
    return pieces <= max(1, len(word) // 3)


def learn_pieces(words: Iterable[bytes], count: int, path: str) -> PieceVocabulary:
    """Learn pieces from sentences.

    Args:
        words: sentences, tokens separated by blanks; what is not UTF-8 is left out.
        count: the number of pieces, those of single bytes included.
        path: the name of the text, for errors.

    Raises:
        MosesFeatureError: the text has too few words for so many pieces, or too many characters.
    """
    if count < FEWEST_PIECES:
        raise UsageError(f"--subwords {count}: expected 0, or {FEWEST_PIECES} at least")
    model, bad = io.BytesIO(), 0
    unreadable: MosesFeatureError | None = None

    def decoded() -> Iterator[str]:
        nonlocal bad, unreadable
        try:
            for text in words:
                bad += not is_utf8(text)
                yield text.decode(errors="ignore").translate(_AS_BLANKS)
        except MosesFeatureError as error:  # sentencepiece makes another error of it
            unreadable = error
            raise

    try:
        SentencePieceTrainer.train(
            sentence_iterator=decoded(),
            model_writer=model,
            model_type="bpe",
            vocab_size=count,
            character_coverage=0.9999,
            normalization_rule_name="identity",
            byte_fallback=True,
            eos_id=SYMBOLS.index(b"</s>"),
            unk_id=SYMBOLS.index(b"<unk>"),
            bos_id=-1,
            pad_id=-1,
            input_sentence_size=SENTENCES,
            num_threads=1,
            max_sentence_length=MOST_BYTES,
            minloglevel=2,
        )
    except RuntimeError as error:
        if unreadable is not None:
            raise unreadable from None
        raise MosesFeatureError(
            f"{path}: expected a text with enough words for --subwords {count}, and far more are "
            f"better: {error}"
        ) from None
    if bad:
        logger.warning(
            "%s: %d lines are not UTF-8: their words are spelt in bytes, and translations "
            "lose these bytes",
            path,
            bad,
        )
    return of_model(model.getvalue())


def restricted(vocabulary: PieceVocabulary, used: Collection[int]) -> PieceVocabulary:
    """Return the same pieces, of which words are split into used ones and single characters alone.

    A network learns nothing about pieces of both languages that the text of one of them does not
    have (Sennrich's subword-nmt does the same, given a vocabulary); and words of the other language
    are told by their many pieces.
    """
    unused = {
        number
        for number, piece in enumerate(vocabulary.shortlist, len(SYMBOLS))
        if number not in used
        and not vocabulary.is_byte(number)
        and len(piece.decode(errors="ignore")) > 1
    }
    from sentencepiece.sentencepiece_model_pb2 import (  # type: ignore[attr-defined]
        ModelProto,
    )

    model = ModelProto.FromString(vocabulary.model)
    for number in unused:
        model.pieces[number].type = ModelProto.SentencePiece.Type.UNUSED
    return PieceVocabulary(vocabulary.shortlist, model.SerializeToString(deterministic=True))


def are_shared(source: Vocabulary, target: Vocabulary) -> bool:
    """Return whether both sides have the same pieces."""
    of_both = isinstance(source, PieceVocabulary) and isinstance(target, PieceVocabulary)
    return of_both and source.shortlist == target.shortlist


def of_model(model: bytes) -> PieceVocabulary:
    """Return the vocabulary of a model of sentencepiece.

    Raises:
        RuntimeError: it is no model, or one without our symbols and pieces of bytes.
    """
    processor = SentencePieceProcessor(model_proto=model)
    count = processor.get_piece_size()
    pieces = [processor.id_to_piece(number).encode() for number in range(count)]
    first = *SYMBOLS, *_BYTES
    if tuple(pieces[: len(first)]) != first or MARK.encode() not in pieces:
        raise RuntimeError("it was not learnt by this program")
    return PieceVocabulary(tuple(pieces[len(SYMBOLS) :]), model)


def load_vocabulary(path: Path) -> Vocabulary:
    """Read what `save` of either kind wrote.

    Raises:
        MosesFeatureError: a file cannot be read.
        FormatError: it is no vocabulary, or sentencepiece's model has other pieces.
    """
    plain, beside = Vocabulary.load(path), path.with_suffix(PIECES)
    if not beside.exists():
        if plain.shortlist[:BYTES] == _BYTES:
            raise MosesFeatureError(f"{beside}: expected sentencepiece's model, found no such file")
        return plain
    try:
        content = beside.read_bytes()
        if not content:
            raise FormatError(beside, "a model of sentencepiece", "an empty file")
        found = of_model(content)
    except (OSError, RuntimeError, ValueError) as error:
        raise FormatError(beside, "a model of sentencepiece", f"{error}") from error
    if found.shortlist != plain.shortlist:
        raise FormatError(beside, f"the pieces of {path.name}", "others")
    return found
