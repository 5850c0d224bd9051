"""JSON of Sockeye and of OpenNMT's server: one line per sentence, in the order of the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.translation import LOG_PROB, ListedTranslation
from moses_feature.runtime.errors import FormatError, shown


def sockeye(reader: LineReader) -> Iterator[ListedTranslation]:
    """Yield the translations in the output of `sockeye.translate --output-type json`.

    Its scores are costs (minus log probabilities, divided by the length penalty), negated here.

    Raises:
        FormatError: a line without `translations` and as many `scores`, nor `translation` and
            `score`.
    """
    for content in _values(reader):
        if not isinstance(content, dict):
            raise _wrong(reader, "a JSON object for each sentence", content)
        texts, scores = content.get("translations"), content.get("scores")
        if texts is None:
            texts, scores = [content.get("translation")], [content.get("score")]
        if not isinstance(texts, list) or not isinstance(scores, list) or len(texts) != len(scores):
            raise _wrong(reader, '"translations" and as many "scores"', content)
        for text, score in zip(texts, scores, strict=True):
            yield _translation(reader, text, _negated(_first(score)), content)


def opennmt(reader: LineReader) -> Iterator[ListedTranslation]:
    """Yield the translations in responses of OpenNMT-py's server, one sentence per response.

    A response is a list of lists of objects with `tgt` and `pred_score`, a log probability.

    Raises:
        FormatError: another line, or a response about several sentences.
    """
    for content in _values(reader):
        objects = list(_flat(content))
        if not objects or not all(isinstance(one, dict) for one in objects):
            raise _wrong(reader, 'a list of objects with "tgt" and "pred_score"', content)
        if len(objects) > 1 and len({str(one.get("src")) for one in objects if "src" in one}) != 1:
            raise _wrong(reader, 'translations of one sentence on a line, with its "src"', content)
        for one in objects:
            yield _translation(reader, one.get("tgt"), one.get("pred_score"), one)


def _values(reader: LineReader) -> Iterator[Any]:
    for line in reader:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            raise FormatError(reader.path, "JSON", shown(line), reader.line_number) from None


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


def _first(score: Any) -> Any:
    """Return a score, which newer versions put into a list (with the scores of target factors)."""
    return score[0] if isinstance(score, list) and score else score


def _negated(score: Any) -> Any:
    return -score if isinstance(score, float | int) and not isinstance(score, bool) else score


def _flat(content: Any) -> Iterator[Any]:
    if isinstance(content, list):
        for part in content:
            yield from _flat(part)
    else:
        yield content


def _wrong(reader: LineReader, expected: str, content: Any) -> FormatError:
    found = shown(json.dumps(content)[:1000].encode())
    return FormatError(reader.path, expected, found, reader.line_number)
