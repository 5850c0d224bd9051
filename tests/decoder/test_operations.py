"""The operation sequence model: against values of Moses' own code, and against a plain twin."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import kenlm
import numpy as np
import pytest
from helpers.plain_operations import Phrase, plain_values
from helpers.toy import OPERATIONS, make_toy, operations_arpa

from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.segmentation import read_segmentation
from moses_feature.moses.xml_input import Marks, parse_marked
from moses_feature.runtime.errors import MosesFeatureError

GOLDEN = json.loads(OPERATIONS.read_text())
"""60 random sentences: values of `osmHyp.cpp`, of each phrase in its sentence and by itself."""


@pytest.fixture(scope="module")
def arpa(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("operations") / "osm.arpa"
    path.write_bytes(operations_arpa())
    return path


def phrases_of(sentence) -> list[Phrase]:
    words = sentence["source"].split()
    return [
        Phrase(
            of["start"],
            words[of["start"] : of["end"]],
            of["target"].split(),
            [tuple(map(int, link.split("-"))) for link in of["links"].split()],
        )
        for of in sentence["phrases"]
    ]


@pytest.mark.parametrize("sentence", GOLDEN["sentences"])
def test_the_plain_twin_has_the_values_of_moses(arpa, sentence):
    model = kenlm.Model(str(arpa))
    phrases = phrases_of(sentence)
    found = plain_values(model, len(sentence["source"].split()), phrases)
    expected = [of["values"] for of in sentence["phrases"]]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    for phrase, of in zip(phrases, sentence["phrases"], strict=True):
        alone = replace(phrase, start=0)
        (values,) = plain_values(model, len(phrase.source), [alone], context=False)
        np.testing.assert_allclose(values, of["alone"], atol=2e-5)


@pytest.mark.parametrize("limit", [3, -1])
def test_long_sentences_have_the_values_of_the_plain_twin(tmp_path, limit):
    toy = make_toy(tmp_path / "toy", operations=True, limit=limit)
    sentence = ["a", "b", "x", "c", "d", "a", "c", "b", "b", "d"]
    system = replace(System.of_ini(toy.ini), segmentation=True)
    limits = SearchLimits(300, 100)
    decoder = EmbeddedDecoder(system, [[word.encode() for word in sentence]], limits)
    columns = system.features.columns("OSM0")
    first = int(system.features.tuneable[: columns.start].sum())
    jumps = 0
    for found in decoder.translate(0, 300, distinct=False):
        phrases = []
        words = len(sentence), len(found.words)
        for place in read_segmentation(found.segmentation, *words):
            source = sentence[place.source : place.source_end]
            target = [w.decode() for w in found.words[place.target : place.target_end]]
            links = toy.links[0].get((" ".join(source), " ".join(target)), "0-0")
            if source == ["x"]:
                target = ["_TRANS_SLF_"]
            pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
            phrases.append(Phrase(place.source, source, target, pairs))
        jumps += [phrase.start for phrase in phrases] != sorted(phrase.start for phrase in phrases)
        expected = np.sum(plain_values(toy.operations, len(sentence), phrases), axis=0)
        np.testing.assert_allclose(found.features[first : first + 5], expected, atol=1e-5)
    assert jumps > 50


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num-features=5", "num-features=4", "expected 4 weights for OSM0"),
        ("num-features=5", "num-features=5 support-features=no", "expected num-features=1, with"),
        ("num-features=5", "num-features=5 input-factor=1", "one factor"),
        ("OpSequenceModel name", "OpSequenceModel\nOpSequenceModel name", "one OpSequenceModel"),
        ("osm.arpa", "none.arpa", "expected a file for OSM0, found none"),
    ],
)
def test_what_is_refused(tmp_path, old, new, message):
    toy = make_toy(tmp_path / "toy", operations=True)
    path = toy.folder / "moses.ini"
    text = path.read_text()
    line = next(line for line in text.splitlines() if line.startswith("OpSequenceModel"))
    path.write_text(text.replace(line, line.replace(old, new)))
    with pytest.raises(MosesFeatureError, match=message):
        System.of_ini(toy.ini)


def test_one_value_without_its_counts(tmp_path):
    toy = make_toy(tmp_path / "toy", operations=True)
    path = toy.folder / "moses.ini"
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("OpSequenceModel"):
            lines[number] = line.replace("num-features=5", "num-features=1 support-features=no")
        if line.startswith("OSM0="):
            weight = line.split()[1]
            lines[number] = f"OSM0= {weight} 0 0 0 0"
    words = [[b"a", b"b", b"c", b"d"]]
    path.write_text(
        "\n".join(lines).replace("num-features=1 support-features=no", "num-features=5")
    )
    whole = EmbeddedDecoder(System.of_ini(toy.ini), words).translate(0, 20)
    path.write_text("\n".join(lines).replace(f"{weight} 0 0 0 0", weight))
    alone = EmbeddedDecoder(System.of_ini(toy.ini), words).translate(0, 20)
    assert [of.words for of in alone] == [of.words for of in whole]
    np.testing.assert_allclose([of.score for of in alone], [of.score for of in whole])


def test_marked_input_is_refused(tmp_path):
    toy = make_toy(tmp_path / "toy", operations=True)
    marked = parse_marked(b'a <np translation="B">b</np> c')
    marks = Marks((marked,), "exclusive")
    with pytest.raises(MosesFeatureError, match="operation sequence model"):
        EmbeddedDecoder(System.of_ini(toy.ini), [marked.words], marks=marks)
