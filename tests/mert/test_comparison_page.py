"""What a comparison's page says of the test set, against plain counting."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.browser import BROWSER, driven
from sacrebleu.metrics.bleu import BLEU

from mert.comparison.page import write_page
from mert.comparison.results import Comparison, Seconds, SystemResult, TuningRun
from mert.comparison.translations import changes
from mert.tuning.corpus import Corpus
from moses_feature.metrics.bleu import References, sentence_bleu
from moses_feature.moses.segmentation import read_segmentation
from moses_feature.runtime.errors import FormatError

SOURCES = [b"a b c", b"d e", b"f <b> g h i j"]
REFERENCES = [b"A B C", b"D", b"F G H I J"]
BEFORE = [b"A B X", b"D", b"F G H I J"]
AFTER = [b"A B C", b"D", b"F G <i>"]
WEIGHTS = {"LM0_0": 0.5, "TM0_0": 0.25, "TM0_1": -0.25}


def split(lines: list[bytes]) -> list[tuple[bytes, ...]]:
    return [tuple(line.split()) for line in lines]


def statistics_of(lines: list[bytes]) -> np.ndarray:
    pairs = zip(REFERENCES, lines, strict=True)
    return np.concatenate([References([r.split()]).statistics([h.split()]) for r, h in pairs])


def write_lists(path: Path, lists: list[list[bytes]]) -> Path:
    content = b""
    for number, of_sentence in enumerate(lists):
        for place, words in enumerate(of_sentence):
            values = b"LM0= -%d TM0= -1 -%d" % (2 * place + 2, place)
            last = len(SOURCES[number].split()) - 1
            segmentation = b"0-%d=0-%d" % (last, len(words.split()) - 1)
            line = b"%d ||| %b  ||| %b ||| -1 ||| %b\n" % (number, words, values, segmentation)
            content += line
    path.write_bytes(gzip.compress(content))
    return path


def test_sentence_bleu_is_that_of_sacrebleu():
    metric = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, effective_order=False)
    for lines in (BEFORE, AFTER):
        for reference, line, found in zip(
            REFERENCES, lines, sentence_bleu(statistics_of(lines)), strict=True
        ):
            expected = metric.sentence_score(line.decode(), [reference.decode()]).score
            assert 100 * found == pytest.approx(expected, abs=1e-9)
    nothing = References([(b"A",)]).statistics([(), (b"B",)])
    assert sentence_bleu(nothing).tolist() == [0, 0]


def test_what_changed(tmp_path):
    before = write_lists(tmp_path / "before.gz", [[line] for line in BEFORE])
    after = write_lists(
        tmp_path / "after.gz", [[AFTER[0], b"A", BEFORE[0]], [AFTER[1]], [AFTER[2]]]
    )
    of_before = before, WEIGHTS, statistics_of(BEFORE)
    of_after = after, WEIGHTS, statistics_of(AFTER)
    found = list(changes(of_before, of_after, split(SOURCES)))
    gains = 100 * (sentence_bleu(of_after[2]) - sentence_bleu(of_before[2]))
    assert [change.sentence for change in found] == [0, 2]
    assert [change.gain for change in found] == [gains[0], gains[2]]
    assert found[0].decided == (("LM0_0", 2.0), ("TM0_0", 0.0), ("TM0_1", -0.5))
    assert found[1].decided is None
    assert found[0].after.phrases == ((0, 3, 0, 3),)
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(gzip.compress(b"0 ||| A B C ||| LM0= 1 TM0= 1 1 ||| 1 ||| 0-1=0-2\n"))
    with pytest.raises(FormatError, match="line 1: expected phrases that cover 3 source and 3 tar"):
        list(changes(of_before, (damaged, *of_after[1:]), split(SOURCES)))


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        (b"0=0", 2, 1),
        (b"0=0 0=1", 1, 2),
        (b"0=0 1=5", 2, 2),
        (b"0=1", 1, 2),
        (b"0:0", 1, 1),
        (b"", 1, 1),
        (b"1-0=0", 2, 1),
    ],
)
def test_a_segmentation_of_another_sentence(text, source, target):
    with pytest.raises(ValueError, match="phrases"):
        read_segmentation(text, source, target)


def test_a_phrase_without_target_words():
    places = read_segmentation(b"2=0-18446744073709551615 0-1=0-1 3=2", 4, 2)
    assert places == [(2, 3, 0, 0), (0, 2, 0, 2), (3, 4, 2, 2)]
    assert read_segmentation(b"", 0, 0) == []


@pytest.fixture
def page(tmp_path) -> Path:
    corpus = Corpus(tuple(split(SOURCES)), tuple((r,) for r in split(REFERENCES)), (), ())
    before = write_lists(tmp_path / "before.gz", [[line] for line in BEFORE])
    after = write_lists(tmp_path / "after.gz", [[line] for line in AFTER])
    seconds = Seconds(1.0, 1.0)
    run = TuningRun(
        1, 50.0, 50.0, 1, "done", True, False, WEIGHTS, (), statistics_of(BEFORE), before, (50.0,)
    )
    systems = (
        SystemResult("base", (run,), seconds, None, None, False, ()),
        SystemResult(
            "<new>",
            (replace(run, test_statistics=statistics_of(AFTER), test_lists=after),),
            seconds,
            0.0,
            1.0,
            False,
            (),
        ),
    )
    path = tmp_path / "page.html"
    write_page(Comparison(systems, "s"), corpus, path, {})
    return path


def test_the_page(page):
    text = page.read_text()
    assert "What &lt;new&gt; changes" in text
    titles = re.findall("<h2>(.*?)</h2>", text)
    assert re.findall('<li><a href="#section-[0-9]+">(.*?)</a>', text) == titles
    assert text.count("<details><summary>show them</summary>") == 1  # the changed sentences
    assert "F G <mark>&lt;i&gt;</mark>" in text
    assert "A B <mark>X</mark>" in text
    assert "2 of 3 sentences are translated otherwise" in text
    assert "not known: &lt;new&gt;&#39;s list has one translation alone" in text
    assert "f &lt;b&gt; g h i j → F G &lt;i&gt;" in text


CHOICES = """
const controls = document.querySelector('[data-changes]');
const shown = () => [...document.querySelectorAll('article')].filter((a) => !a.hidden)
  .map((a) => a.querySelector('h3').textContent.split(':')[0]);
found.all = shown();
choose(controls.querySelector('select'), 'loss');
found.losses = shown();
choose(controls.querySelector('select'), '');
type(controls.querySelector('input'), 'a b x');
found.word = shown();
found.told = controls.querySelector('output').textContent;
"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_in_a_browser(page):
    found = driven(page, CHOICES)
    assert found["all"] == ["Sentence 1", "Sentence 3"]
    assert found["losses"] == ["Sentence 3"]
    assert found["word"] == ["Sentence 1"]
    assert found["told"] == "1 shown"
    assert found["requests"] == 0
