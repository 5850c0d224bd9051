"""New features for n-best lists: as a command, and in tuning."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from helpers.models import SEARCH_SIZES, random_model
from helpers.toy import NEURAL_SIZES, make_toy, neural_score, random_neural_lm

from mert.decoders.rescored import RescoredDecoder
from moses_feature.cslm.nplm import load_neural_lm
from moses_feature.cslm.settings import LM_ARCHITECTURE as ARCHITECTURE
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import named, read_nbest
from moses_feature.networks.files import write_model_files
from moses_feature.phrases.model import save_model
from moses_feature.rescoring.nbest import BadTranslationError, CslmScorer, read_weights, rescore
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError

LISTS = b"""0 ||| A B  ||| LM0= -2 TM0= -1 -0.5 ||| -3.5
0 ||| C  ||| LM0= -1 TM0= -2 -0.5 ||| -4 ||| 0-0 |||
2 ||| \xe9  ||| LM0= -3 TM0= -1 -1 ||| -1
2 |||  ||| LM0= -1 TM0= 0 0 ||| -2\r
"""
TIGHT = b"3 ||| ||| LM0= -1 TM0= 0 0 ||| -2 ||| 5\n"


class Lengths:
    """A feature that tells sentence and words."""

    name = "N0"

    def finish(self):
        """See nothing."""

    def scores(self, lists):
        """Return the features."""
        return [100 * number + len(of.words) + 0.125 for number, some in lists for of in some]


@pytest.fixture
def lists(tmp_path):
    (tmp_path / "lists").write_bytes(LISTS)
    return tmp_path / "lists"


def rescored(path, weights=None) -> list[bytes]:
    with NbestReader(path) as reader:
        lists = rescore(reader, [Lengths()], weights)
        return [translation.content() for group in lists for translation in group]


def test_a_feature_is_appended_and_all_else_stays(lists):
    expected = LISTS.splitlines(keepends=True)
    for place, value in enumerate((b"2.125", b"1.125", b"201.125", b"200.125")):
        fields = expected[place].split(b" ||| ")
        fields[2] += b" N0= " + value
        expected[place] = b" ||| ".join(fields)
    assert rescored(lists) == expected


def test_a_translation_without_words_may_leave_one_space(lists):
    lists.write_bytes(TIGHT)
    assert rescored(lists) == [TIGHT.replace(b"0 0", b"0 0 N0= 300.125")]


def test_weights_put_the_lists_in_a_new_order(lists):
    weights = {"LM0": (1.0,), "TM0": (0.5, 0.0), "N0": (-2.0,)}
    found = rescored(lists, weights)
    assert [line.split(b" ||| ")[1].strip() for line in found] == [b"C", b"A B", b"", b"\xe9"]
    totals = [float(line.split(b" ||| ")[3].split(b" |||")[0]) for line in found]
    expected = [-1 - 1 - 2.25, -2 - 0.5 - 4.25, -1 - 400.25, -3 - 0.5 - 402.25]
    np.testing.assert_allclose(totals, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("content", "weights", "message"),
    [
        (b"0 ||| A ||| LM0= -1\n", None, r"line 1: expected sentence \|\|\| words"),
        (b"x ||| A  ||| LM0= -1 ||| -1\n", None, r"expected sentence \|\|\| words"),
        (LISTS + b"0 ||| A  ||| LM0= -1 ||| -1\n", None, "line 5: expected the lines of sentence"),
        (b"0 ||| A  ||| N0= -1 ||| -1\n", None, "no feature N0 yet"),
        (
            LISTS,
            {"LM0": (1.0,), "TM0": (1.0,), "N0": (1.0,)},
            r"as many values of TM0 .* 1, found 2",
        ),
        (LISTS, {"LM0": (1.0,), "N0": (1.0,)}, "a weight of TM0, found none"),
        (LISTS, {"X0": (1.0,)}, "a weight of LM0, found none"),
        (
            LISTS,
            {"LM0": (1e308,), "TM0": (1e308, 1e308), "N0": (1.0,)},
            "a finite total, found -?inf",
        ),
        (b"0 ||| A  ||| LM0= -1 ||| nan\n", None, r"expected sentence \|\|\| words"),
        (b"0 ||| A  ||| LM0= -1e999 ||| -1\n", {"LM0": (1.0,), "N0": (0.0,)}, "Name= value"),
        (b"0 ||| A  ||| LM0= x ||| -1\n", {"LM0": (1.0,)}, "expected Name= value"),
        (b"0 ||| A  ||| LM0=-1 ||| -1\n", None, "line 1: expected Name= value …: finite"),
        (b"0 ||| A  ||| d: 0 lm: -14 ||| -1\n", None, "line 1: expected Name= value"),
        (b"0 ||| A  ||| = -1 ||| -1\n", None, "line 1: expected Name= value"),
    ],
)
def test_bad_lists(lists, content, weights, message):
    lists.write_bytes(content)
    with pytest.raises(FormatError, match=message):
        rescored(lists, weights)


def test_names_and_weights(tmp_path):
    assert named("a/b", "CSLM0") == ("CSLM0", "a/b")
    assert named("X1=a=b", "CSLM0") == ("X1", "a=b")
    for text in ("X_1=a", "=a", "X="):
        with pytest.raises(UsageError, match="expected NAME=PATH"):
            named(text, "CSLM0")
    (tmp_path / "weights").write_text("# comment\nLM0= 0.5\n\nTM0= 1 -2\n")
    assert read_weights(tmp_path / "weights") == {"LM0": (0.5,), "TM0": (1.0, -2.0)}
    ini = (
        "\n# a\n[feature]\nDistortion\nWordPenalty\n[weight]\nDistortion0= 0.5\nWordPenalty0= -1\n"
    )
    (tmp_path / "moses.ini").write_text(ini)
    assert read_weights(tmp_path / "moses.ini") == {"Distortion0": (0.5,), "WordPenalty0": (-1.0,)}
    (tmp_path / "weights").write_text("LM0= 1e400\n")
    with pytest.raises(FormatError, match="line 1: expected a line like"):
        read_weights(tmp_path / "weights")
    (tmp_path / "weights").write_text("LM0 0.5\n")
    with pytest.raises(FormatError, match="line 1: expected a line like"):
        read_weights(tmp_path / "weights")


@pytest.mark.usefixtures("lists")
def test_the_best_translations(tmp_path, run):
    (tmp_path / "weights").write_text("LM0= 1\nTM0= 0.5 0\n")
    run("list", "rescore", "lists", "out", "--weights", "weights", "--one-best", "best")
    assert (tmp_path / "best").read_bytes() == b"C\n\n\n"
    done = run("list", "rescore", "lists", "same", "--one-best", "as-they-are")
    assert "translations, as they were\n" in done.stderr
    assert (tmp_path / "same").read_bytes() == (tmp_path / "lists").read_bytes()
    run("list", "rescore", "lists", "out", "--weights", "weights", "--one-best", "best.gz")
    assert gzip.decompress((tmp_path / "best.gz").read_bytes()) == b"C\n\n\n"
    run(
        "list",
        "rescore",
        "lists",
        "again",
        "--weights",
        "weights",
        "--one-best",
        "no/best",
        exit_code=2,
    )
    assert not (tmp_path / "again").exists()
    (tmp_path / "lists").write_bytes(b"".join(reversed(LISTS.splitlines(keepends=True))))
    refused = run(
        "list", "rescore", "lists", "again", "--weights", "weights", "--one-best", "b", exit_code=1
    )
    assert "in the order of the sentences" in refused.stderr
    assert not (tmp_path / "again").exists()


@pytest.mark.usefixtures("lists")
def test_the_command(tmp_path, run):
    save_model(tmp_path / "m", random_model(SEARCH_SIZES))
    model_directory = "m"
    files = random_neural_lm(np.random.default_rng(1))
    write_model_files(tmp_path / "lm", ARCHITECTURE, files)
    (tmp_path / "source").write_bytes(b"a b\nc\nthe dog\n")
    run(
        "list",
        "rescore",
        "lists",
        "out.gz",
        "--model",
        "lm",
        "--model",
        f"R={model_directory}",
        "--source",
        "source",
    )
    lines = gzip.decompress((tmp_path / "out.gz").read_bytes()).splitlines()
    first = lines[0].split(b" ||| ")[2].split()
    assert first[:6] == [b"LM0=", b"-2", b"TM0=", b"-1", b"-0.5", b"CSLM0="]
    assert float(first[6]) == pytest.approx(neural_score(files, "A B"), abs=1e-4)
    expected = run("model", "score", model_directory, stdin=b"a b\tA B\n").stdout
    assert float(first[8]) == pytest.approx(float(expected), abs=1e-4)
    for arguments, message in (
        ((), "expected --model, --weights, --one-best, --reference, or a --format"),
        (("--model", model_directory), "expected --source"),
        (("--model", "lm", "--model", "lm"), "expected different names"),
    ):
        assert message in run("list", "rescore", "lists", "x", *arguments, exit_code=2).stderr
    (tmp_path / "source").write_bytes(b"a b\n")
    result = run(
        "list",
        "rescore",
        "lists",
        "x",
        "--model",
        model_directory,
        "--source",
        "source",
        exit_code=1,
    )
    assert "expected a sentence 2 (from 0), which the lists have, found 1 lines" in result.stderr
    assert not (tmp_path / "x").exists()
    (tmp_path / "source").write_bytes(b"a b\nc\nthe dog\n\n")
    run("list", "rescore", "lists", "y", "--model", model_directory, "--source", "source")
    (tmp_path / "source").write_bytes(b"a b\nc\nthe dog\nd\n")
    result = run(
        "list",
        "rescore",
        "lists",
        "x",
        "--model",
        model_directory,
        "--source",
        "source",
        exit_code=1,
    )
    assert "expected 3 sentences as in the n-best lists, found 4" in result.stderr


def refuse(lists):
    """Refuse a translation of the last sentence."""
    raise BadTranslationError(lists[-1][1][-1], "links", "none")


def test_a_rescored_decoder(tmp_path, monkeypatch):
    """With the weight of the search's own feature it finds what the search does."""
    toy = make_toy(tmp_path / "toy", types=(), neural=1, options=3)
    sentences = ["a b c", "d a"]
    system = System.of_ini(toy.ini)
    words = [sentence.encode().split() for sentence in sentences]
    inner = EmbeddedDecoder(system, words, SearchLimits(2000, 2000))
    scorer = CslmScorer("CSLM9", load_neural_lm(tmp_path / "toy" / "neural0"))
    decoder = RescoredDecoder(inner, [scorer], [("CSLM0", "a.cslm")], 2)
    assert decoder.features.names[-1] == "CSLM9_0"
    weight = system.features.weights[system.features.columns("CSLM0")[0]]
    weights = decoder.features.weights[decoder.features.tuneable]
    names = list(decoder.features.names)
    weights[names.index("CSLM0_0")], weights[-1] = 0.0, weight
    moved = decoder.features.with_weights(weights)
    decoder.write_nbest(moved, 1, tmp_path / "one.gz")
    decoder.write_nbest(moved, 400, tmp_path / "many.gz")
    for number, (best,) in enumerate(read_nbest(tmp_path / "one.gz", moved, 2)):
        lists = list(read_nbest(tmp_path / "many.gz", moved, 2))[number]
        scores = [hypothesis.score for hypothesis in lists]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in lists[:5]:
            text = b" ".join(hypothesis.words).decode()
            assert hypothesis.features[-1] == pytest.approx(
                neural_score(toy.neural[0], text), abs=1e-4
            )
            assert hypothesis.features[-1] == pytest.approx(
                hypothesis.features[names.index("CSLM0_0")], abs=1e-4
            )
        expected = inner.translate(number, features=FeatureSet.of_ini(toy.ini))[0]
        assert best.words == lists[0].words == expected.words
    monkeypatch.setattr(scorer, "scores", refuse)
    refusing = RescoredDecoder(inner, [scorer], [("CSLM0", "a.cslm")], 2)
    said = "sentence 2 of the text: expected links, found none"
    with pytest.raises(MosesFeatureError, match=said):
        refusing.write_nbest(moved, 1, tmp_path / "none.gz")
    with pytest.raises(UsageError, match="has a feature CSLM0 already"):
        RescoredDecoder(
            inner, [CslmScorer("CSLM0", load_neural_lm(tmp_path / "toy/neural0"))], [], 2
        )
    assert NEURAL_SIZES.order == 4
