"""XML-RPC as mosesserver speaks it (`moses/server/TranslationRequest.cpp`)."""

from __future__ import annotations

import re
import xmlrpc.client
from dataclasses import dataclass
from typing import Any

from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.segmentation import read_segmentation
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.translation.translated import LINE_BREAKS, Translated, Translation

SHOWN = 80
"""Characters of a bad value that are shown."""
PARSE_ERROR, FAILED = -503, -500
"""Fault codes, as xmlrpc-c has them: a bad request, a failure here."""
REFUSED = ["sg", "topt", "word-align", "add-score-breakdown", "lambda", "model_name", "context"]
REFUSED += ["context-scope", "weights", "session-id", "bias"]
"""Parameters of mosesserver that would change the answer, and are not supported."""


@dataclass(frozen=True)
class RpcRequest:
    """What a client of mosesserver asks for.

    Attributes:
        text: the sentence, tokenised.
        align: whether the phrases are wanted.
        list_size: translations in the list; 0 for no list.
    """

    text: str
    align: bool = False
    list_size: int = 0


class RpcError(MosesFeatureError):
    """A request that is no call of `translate`, or asks for what is not there."""


def read_request(body: bytes, most_translations: int) -> RpcRequest:
    """Read the body of a request.

    Raises:
        RpcError: it is none that can be answered.
    """
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body or b"\0" in body:  # UTF-16 hides them
        raise RpcError("expected a call without a document type")
    try:
        parameters, method = xmlrpc.client.loads(body)
    except Exception as error:  # expat and the converters of values raise many kinds
        raise RpcError(
            f"expected an XML-RPC call, found other content ({str(error)[:SHOWN]})"
        ) from None
    if method != "translate":
        raise RpcError(f"expected the method translate, found {str(method)[:SHOWN]}")
    if len(parameters) != 1 or not isinstance(parameters[0], dict):
        raise RpcError("expected one parameter, a struct")
    given: dict[str, Any] = parameters[0]
    text, size = given.get("text"), given.get("nbest", 0)
    if not isinstance(text, str):
        raise RpcError("Missing source text")
    asked = [name for name in REFUSED if _is_set(given.get(name))]
    if asked:
        raise RpcError(f"not supported: {', '.join(asked)}")
    if not re.fullmatch(r"[0-9]{1,6}", str(size)) or int(size) > most_translations:
        raise RpcError(f"nbest: expected 0 to {most_translations}, found {str(size)[:SHOWN]}")
    text = text.rstrip("\r\n")  # mosesserver takes the line ends of its clients off, too
    if LINE_BREAKS.intersection(text):
        raise RpcError("expected one sentence, found a line break")
    return RpcRequest(text, _is_set(given.get("align")), int(size))


def _is_set(value: Any) -> bool:
    return value not in (None, False, 0, "", "false", "False", "FALSE", "0")


def answer_of(request: RpcRequest, translated: Translated) -> bytes:
    """Return the answer to a request.

    As mosesserver's: a text ends with a space, and places are counted from 0, ends included.
    """
    best = translated.translations[0]
    content: dict[str, Any] = {"text": _spaced(best.tokens)}
    if request.align:
        content["align"] = _phrases(translated.tokens, best)
    if request.list_size:
        content["nbest"] = [
            {"hyp": _spaced(of.tokens), "totalScore": of.score}
            | ({"align": _phrases(translated.tokens, of)} if request.align else {})
            for of in translated.translations[: request.list_size]
        ]
    return xmlrpc.client.dumps((content,), methodresponse=True, encoding="utf-8").encode(
        errors="replace"
    )


def fault(code: int, message: str) -> bytes:
    """Return an answer that says what is wrong."""
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, message)).encode(errors="replace")


def _spaced(words: str) -> str:
    return f"{words} " if words else ""


def _phrases(source: str, translation: Translation) -> list[dict[str, int]]:
    texts = (text.encode(errors="surrogateescape") for text in (source, translation.tokens))
    lengths = (len(tokens(text)) for text in texts)
    return [
        {
            "tgt-start": place.target,
            "tgt-end": place.target_end - 1,
            "src-start": place.source,
            "src-end": place.source_end - 1,
        }
        for place in read_segmentation(translation.phrases.encode(), *lengths)
    ]
