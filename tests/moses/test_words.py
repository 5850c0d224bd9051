"""Tokens become words: factors, escapes, non-terminals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_feature.moses.words import WordError, WordOptions, any_escaped, escape, unescape


def test_plain_tokens_stay_as_they_are():
    assert WordOptions().pair(b"a &apos; b ", b" \xe9|x\n") == (
        [b"a", b"&apos;", b"b"],
        [b"\xe9|x"],
    )


def test_factors():
    options = WordOptions(source_factor=0, target_factor=1)
    assert options.pair(b"a|N b|V", b"A|n|1 B|v|2") == ([b"a", b"b"], [b"n", b"v"])
    with pytest.raises(WordError, match=r"expected factor 1 .*found 'B'"):
        options.pair(b"a", b"A|n B")


@given(st.binary(max_size=12))
def test_escaping_and_back(token):
    assert unescape(escape(token)) == token
    assert b"|" not in escape(token)


def test_legacy_escapes():
    assert unescape(b"&bar;&bra;x&ket;&#124;&#91;&#93;") == b"|[x]|[]"
    assert unescape(b"&amp;lt;") == b"&lt;"
    assert any_escaped([b"a", b"l&apos;"])
    assert not any_escaped([b"a", b"AT&T"])


def test_escaping_options():
    assert WordOptions(escaping="unescape").pair(b"l&apos;", b"&quot;") == ([b"l'"], [b'"'])
    assert WordOptions(escaping="escape").pair(b"l'", b"[x]") == ([b"l&apos;"], [b"&#91;x&#93;"])


def test_hierarchical_rules_are_refused_by_name():
    for line in ((b" [X][X] de [X][X] [X] ", b"[X][X] [X]"), (b"<s> [X]", b"<s> [S]")):
        with pytest.raises(WordError, match=r"hierarchical or syntax rule .*--hierarchical"):
            WordOptions().pair(*line)


def test_non_terminals_are_numbered_by_their_links():
    options = WordOptions(hierarchical=True)
    source, target = b"[X][A] of [X][B] [X]", b"[X][B] [X][A] d&apos; [S]"
    assert options.pair(source, target, b" 0-1 2-0 ") == (
        [b"[1]", b"of", b"[2]"],
        [b"[2]", b"[1]", b"d&apos;"],
    )
