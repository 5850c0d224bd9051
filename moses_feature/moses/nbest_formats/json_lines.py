"""N-best lists as JSON, one line per sentence, in the order of the text.

`{"translations": ["a b", "a"], "scores": [-0.5, -0.75]}`, with log probabilities or any other
scores that are higher for better translations. Other members are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.translation import LOG_PROB, ListedTranslation
from moses_feature.runtime.errors import FormatError, shown


def json_lines(reader: LineReader) -> Iterator[ListedTranslation]:
    """Yield the translations.

    Raises:
        FormatError: a line without `translations` (texts) and as many `scores` (numbers).
    """
    for line in reader:
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            raise FormatError(reader.path, "JSON", shown(line), reader.line_number) from None
        if not isinstance(content, dict):
            raise _wrong(reader, "a JSON object for each sentence", content)
        texts, scores = content.get("translations"), content.get("scores")
        if not isinstance(texts, list) or not isinstance(scores, list) or len(texts) != len(scores):
            raise _wrong(reader, '"translations" and as many "scores"', content)
        for text, score in zip(texts, scores, strict=True):
            yield _translation(reader, text, score, content)


def _translation(reader: LineReader, text: Any, score: Any, content: Any) -> ListedTranslation:
    number = reader.line_number
    if not isinstance(text, str) or isinstance(score, bool) or not isinstance(score, int | float):
        raise _wrong(reader, "a translation (text) with its score (a number)", content)
    try:
        value = float(score)
        words = text.encode()
    except (OverflowError, UnicodeEncodeError):
        raise _wrong(reader, "text, and a score of a usual size", content) from None
    return ListedTranslation(number, number - 1, words, {LOG_PROB: value}, value)


def _wrong(reader: LineReader, expected: str, content: Any) -> FormatError:
    found = shown(json.dumps(content)[:1000].encode())
    return FormatError(reader.path, expected, found, reader.line_number)
