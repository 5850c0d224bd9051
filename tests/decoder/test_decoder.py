"""The embedded decoder against full enumeration, and against golden output of real Moses."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.files import SHARED, needs_shared
from helpers.toy import (
    TYPE,
    Toy,
    all_derivations,
    features_of,
    links_of_steps,
    make_toy,
    segmentation_of_steps,
)

from moses_feature.cslm.scorer import NeuralLM
from moses_feature.decoder import language_model
from moses_feature.decoder.decoder import EmbeddedDecoder, Workers
from moses_feature.decoder.estimates import estimates_of
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.reordering import ReorderingType
from moses_feature.decoder.system import System
from moses_feature.metrics.bleu import BLEU, References
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import Hypothesis, format_nbest, read_nbest
from moses_feature.moses.segmentation import read_segmentation, write_segmentation
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError

WIDE = SearchLimits(pops=20_000, stack=20_000)


def decoder_of(toy: Toy, sentences: list[str], limits: SearchLimits = WIDE) -> EmbeddedDecoder:
    return EmbeddedDecoder(System.of_ini(toy.ini), [s.encode().split() for s in sentences], limits)


def ranked(toy: Toy, sentence: str, distinct: bool) -> list[tuple[float, bytes]]:
    """Return scores and words of all translations, best first."""
    weights = FeatureSet.of_ini(toy.ini).weights
    words = sentence.split()
    scored = sorted(
        (
            (float(features_of(toy, words, steps) @ weights), " ".join(s.target for s in steps))
            for steps in all_derivations(toy, words)
        ),
        reverse=True,
    )
    best: dict[str, float] = {}
    for score, text in scored:
        best.setdefault(text, score)
    chosen = [(score, text) for text, score in best.items()] if distinct else scored
    return [(score, text.encode()) for score, text in chosen]


SYSTEMS = [
    {"types": ()},
    {"types": (), "limit": 0},
    {"types": (TYPE,)},
    {"types": (TYPE,), "limit": 2},
    {"types": ("phrase-mslr-bidirectional-fe",), "limit": -1},
    {"types": ("mslr-forward-f",)},
    {"types": ("msd-backward-fe-collapseff",)},
    {"types": ("monotonicity-bidirectional-fe-collapseff", "leftright-bidirectional-fe")},
    {"tables": 2, "models": 2},
    {"models": 0},
    {"neural": 1},
    {"types": (), "models": 0, "neural": 2},
    {"neural": 1, "tables": 2, "operations": True},
    {"operations": True},
    {"operations": True, "models": 0, "types": (), "limit": -1},
    {"operations": True, "tables": 2},
]


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("settings", SYSTEMS)
def test_nbest_lists_against_full_enumeration(tmp_path, settings, distinct):
    """All segmentations and reorderings of three- and four-word inputs, one word unknown."""
    toy = make_toy(tmp_path / "toy", options=2, **settings)
    sentences = ["a b c", "c a a b", "d x b"]
    if settings.get("limit") == -1:
        toy.limit = 99
    decoder = decoder_of(toy, sentences)
    for number, sentence in enumerate(sentences):
        expected = ranked(toy, sentence, distinct)[:100]
        found = decoder.translate(number, 100, distinct)
        scores = [hypothesis.score for hypothesis in found]
        accuracy = 1e-5 if "neural" in settings else 1e-6  # float32
        np.testing.assert_allclose(scores, [score for score, _ in expected], atol=accuracy)
        assert b" ".join(found[0].words) == expected[0][1]


def test_a_short_list_is_the_beginning_of_a_longer_one(tmp_path):
    """Most orders of a word that is repeated are the same translation."""
    decoder = decoder_of(make_toy(tmp_path / "toy"), ["x x x x x x y x"])
    lists = [[of.words for of in decoder.translate(0, count)] for count in (1, 2, 3, 5, 7)]
    assert [len(of) for of in lists] == [1, 2, 3, 5, 7]
    assert all(shorter == longer[: len(shorter)] for shorter, longer in pairwise(lists))


@pytest.mark.parametrize("types", [(), (TYPE,), ("mslr-bidirectional-fe-collapseff",)])
def test_features_are_those_of_the_derivation(tmp_path, types):
    """The features of a translation with a single derivation, computed plainly."""
    toy = make_toy(tmp_path / "toy", types=types)
    features = FeatureSet.of_ini(toy.ini)
    decoder = decoder_of(toy, ["b c d"])
    by_text: dict[bytes, list[np.ndarray]] = {}
    for steps in all_derivations(toy, ["b", "c", "d"]):
        text = " ".join(step.target for step in steps).encode()
        by_text.setdefault(text, []).append(features_of(toy, ["b", "c", "d"], steps))
    compared = 0
    for hypothesis in decoder.translate(0, 1000, distinct=False):
        choices = by_text[b" ".join(hypothesis.words)]
        if len(choices) == 1:
            np.testing.assert_allclose(
                hypothesis.features, choices[0][features.tuneable], atol=1e-6
            )
            compared += 1
        total = [values @ features.weights for values in choices]
        assert np.abs(np.array(total) - hypothesis.score).min() < 1e-6
    assert compared > 50


def test_word_alignments_of_nbest_lists(tmp_path):
    """Against the derivations."""
    toy = make_toy(tmp_path / "toy", options=2)
    system = replace(System.of_ini(toy.ini), alignments=True, segmentation=True)
    sentence = ["b", "c", "x", "d"]
    tokens = [word.encode() for word in sentence]
    decoder = EmbeddedDecoder(system, [tokens], SearchLimits(1000, 1000))
    by_text: dict[bytes, set[tuple[str, str]]] = {}
    for steps in all_derivations(toy, sentence):
        text = " ".join(step.target for step in steps).encode()
        derivation = segmentation_of_steps(steps), links_of_steps(toy, sentence, steps)
        by_text.setdefault(text, set()).add(derivation)
    found = decoder.translate(0, 150)
    assert len(found) == 150
    for hypothesis in found:
        assert hypothesis.links is not None
        assert hypothesis.segmentation is not None
        derivation = hypothesis.segmentation.decode(), hypothesis.links.decode()
        assert derivation in by_text[b" ".join(hypothesis.words)]
        places = read_segmentation(hypothesis.segmentation, 4, len(hypothesis.words))
        assert write_segmentation(places) == hypothesis.segmentation
    path = tmp_path / "lists"
    path.write_bytes(format_nbest(0, found, decoder.features))
    for read, hypothesis in zip(*read_nbest(path, decoder.features, 1), found, strict=True):
        assert (read.segmentation, read.links) == (hypothesis.segmentation, hypothesis.links)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("", "table0 at line 1: expected word alignments, such as 0-0 1-1, found none"),
        (" 0:0", "table0 at line 1: expected word alignments, such as 0-0 1-1, found '0:0'"),
        (" 0-7", "table0 at line 1: expected links between 1 source and .* target words"),
    ],
)
def test_a_table_without_word_alignments_has_no_operations(tmp_path, links, message):
    toy = make_toy(tmp_path / "toy", operations=True)
    table = tmp_path / "toy" / "table0"
    first, *lines = table.read_text().splitlines(keepends=True)
    fields = first.split(" |||")
    fields[3] = links
    table.write_text(" |||".join(fields) + "".join(lines))
    with pytest.raises(FormatError, match=message):
        decoder_of(toy, ["a b", "b"])
    decoder_of(toy, ["b c"])  # the line is not needed


def test_sentences_without_words_and_tokens_that_are_none(tmp_path):
    """A bar alone is a factor without a word; operations and alignments pass it by."""
    toy = make_toy(tmp_path / "toy", operations=True)
    system = replace(System.of_ini(toy.ini), alignments=True, segmentation=True)
    for sentences in ([], [[]], [[b"|"]], [[], [b"a", b"|", b"b"], []]):
        decoder = EmbeddedDecoder(system, sentences)
        for number, sentence in enumerate(sentences):
            (best,) = decoder.translate(number)
            assert best.links is not None
            assert bool(best.words) == (len(sentence) > 1)


def buffered(toy: Toy, sentences: list[str], buffer: int) -> EmbeddedDecoder:
    tokens = [sentence.encode().split() for sentence in sentences]
    return EmbeddedDecoder(System.of_ini(toy.ini), tokens, SearchLimits(20, 10), buffer=buffer)


def assert_twice_the_same(decoder: EmbeddedDecoder, expected: list[list[Hypothesis]]) -> None:
    """Compare n-best lists: the first time, and with what is remembered."""
    for number, lists in [*enumerate(expected)] * 2:
        found = decoder.translate(number, 30)
        for one, other in zip(found, lists, strict=True):
            assert one.words == other.words
            np.testing.assert_allclose(one.features, other.features, atol=1e-5)


def test_buffered_and_unbuffered_decoding_are_the_same(tmp_path, monkeypatch):
    """With a table that is too small and a buffer that runs over, but for rounding."""
    toy = make_toy(tmp_path / "toy", neural=2, operations=True, options=5)
    sentences = ["a b c d a c", "d c x b a a b", "b"]
    plain = buffered(toy, sentences, 1)
    expected = [plain.translate(number, 30) for number in range(3)]
    for buffer, slots in ((1, 64), (7, 1 << 16), (4096, 1 << 16), (4096, 64), (50, 64)):
        monkeypatch.setattr(language_model, "FIRST_SLOTS", slots)
        monkeypatch.setattr(language_model, "FIRST_CONTEXTS", slots)
        assert_twice_the_same(buffered(toy, sentences, buffer), expected)


def test_states_of_ngram_models_are_forgotten(tmp_path, monkeypatch):
    """The same, also with a table that is too small."""
    toy = make_toy(tmp_path / "toy", models=2, options=5)
    sentences = ["a b c d a c", "d c x b a a b", "b"]
    plain = decoder_of(toy, sentences)
    expected = [plain.translate(number, 30) for number in range(3)]
    for slots in (1 << 16, 32):
        monkeypatch.setattr(language_model, "FIRST_SLOTS", slots)
        monkeypatch.setattr(language_model, "FIRST_CONTEXTS", slots)
        monkeypatch.setattr(language_model, "MOST_STATES", slots)
        decoder = decoder_of(toy, sentences)
        assert_twice_the_same(decoder, expected)
        table = decoder._options.models._table.ngrams
        assert table.used[0] == np.count_nonzero(table.entries["key"]) > 0


def test_what_goes_wrong_in_a_neural_model_is_raised(tmp_path, monkeypatch):
    toy = make_toy(tmp_path / "toy", neural=1)
    decoder = decoder_of(toy, ["a b c d"])
    expected = decoder_of(toy, ["a b c d"]).translate(0)[0]
    healthy = NeuralLM.log_probs

    for failing in (1, 2, 3):
        calls = 0

        def fail(*arguments: object, failing: int = failing) -> object:
            nonlocal calls
            calls += 1
            if calls == failing:
                raise KeyboardInterrupt
            return healthy(*arguments)

        monkeypatch.setattr(NeuralLM, "log_probs", fail)
        with pytest.raises(KeyboardInterrupt):
            decoder.translate(0)
    monkeypatch.undo()
    found = decoder.translate(0)[0]
    assert (found.words, found.score) == (expected.words, expected.score)


def test_what_is_forgotten_is_asked_again(tmp_path, monkeypatch):
    toy = make_toy(tmp_path / "toy", neural=1, operations=True, models=2)
    sentences = ["a b c d", "d c b a", "a a b b"]
    expected = [decoder_of(toy, sentences).translate(number, 20) for number in range(3)]
    monkeypatch.setattr(language_model, "MOST_CONTEXTS", 50)
    decoder = decoder_of(toy, sentences)
    for _ in range(2):
        for number in range(3):
            for one, other in zip(decoder.translate(number, 20), expected[number], strict=True):
                assert (one.words, one.score) == (other.words, other.score)


def test_the_order_of_a_neural_model_must_be_that_of_the_ini(tmp_path):
    toy = make_toy(tmp_path / "toy", neural=1)
    path = toy.folder / "moses.ini"
    text = path.read_text()
    path.write_text(text.replace("order=4", "order=5"))
    with pytest.raises(MosesFeatureError, match=r"expected a model of order 5 .* found 4"):
        decoder_of(toy, ["a"])
    path.write_text(text.replace("order=4 ", ""))
    with pytest.raises(FormatError, match="expected order=… for CSLM0"):
        System.of_ini(toy.ini)
    path.write_text(text.replace("neural0", "neural9"))
    with pytest.raises(FormatError, match="a file for CSLM0"):
        System.of_ini(toy.ini)


@pytest.mark.parametrize("limits", [SearchLimits(30, 10), WIDE])
def test_a_forced_translation_has_the_score_of_the_search(tmp_path, limits):
    toy = make_toy(tmp_path / "toy")
    decoder = decoder_of(toy, ["a b c d a b", "x"], limits)
    for hypothesis in decoder.translate(0, 30):
        (forced,) = decoder.force(0, hypothesis.words)
        assert forced.words == hypothesis.words
        assert forced.score >= hypothesis.score - 1e-9
        if limits is WIDE:
            np.testing.assert_allclose(forced.features, hypothesis.features, atol=1e-9)
    assert decoder.force(0, (b"nothing", b"like", b"it")) == []
    assert decoder.force(1, (b"x",))[0].words == (b"x",)


def test_a_forced_search_takes_the_best_options_first(tmp_path):
    """The third pop is A: the two best options do not begin the reference, all others are worse."""
    options = {"p": {"B": 0.9, "A": 0.1}, "q": {"B C D": 0.5, "C D": 0.05, "D": 0.04, "C": 0.03}}
    table = "".join(
        f"{source} ||| {target} ||| {score}\n"
        for source, targets in options.items()
        for target, score in targets.items()
    )
    (tmp_path / "table").write_text(table)
    (tmp_path / "moses.ini").write_text(
        f"[feature]\nPhraseDictionaryMemory name=T num-features=1 path={tmp_path}/table\n"
        "Distortion\n[distortion-limit]\n6\n[weight]\nT= 1\nDistortion0= 0\n"
    )
    system = System.of_ini(MosesIni.read(tmp_path / "moses.ini"))
    found = [
        EmbeddedDecoder(system, [[b"p", b"q"]], SearchLimits(pops, 9)).force(
            0, [*b"A B C D".split()]
        )
        for pops in (2, 3)
    ]
    assert [len(of) for of in found] == [0, 1]


def test_table_limit_and_several_tables(tmp_path):
    """The best options by all weighted scores, the language model's estimate among them."""
    toy = make_toy(tmp_path / "toy", types=(), tables=2, options=5)
    path = toy.folder / "moses.ini"
    path.write_text(
        path.read_text().replace("output-factor=0\n", "output-factor=0 table-limit=1\n")
    )
    decoder = decoder_of(toy, ["a"])
    full = make_toy(tmp_path / "full", types=(), tables=2, options=5)
    everything = decoder_of(full, ["a"]).translate(0, 100)
    kept = decoder.translate(0, 100)
    assert len(kept) <= 2 < len(everything)
    assert {h.words for h in kept} <= {h.words for h in everything}
    for hypothesis in kept:
        assert decoder.force(0, hypothesis.words)[0].score == pytest.approx(hypothesis.score)


def test_search_errors_are_what_wider_limits_mend(tmp_path):
    toy = make_toy(tmp_path / "toy", options=5)
    sentences = ["a b c d a c d b a", "d c x b a a b d c", "b a c d d a b c a", "c a d b"]
    features = FeatureSet.of_ini(toy.ini)
    narrow = decoder_of(toy, sentences, SearchLimits(1, 1))
    errors = narrow.search_errors(features, 3)
    wider = decoder_of(toy, sentences, SearchLimits(2, 2))
    better = [
        wider.translate(number)[0].score > narrow.translate(number)[0].score + 1e-9
        for number in range(3)
    ]
    assert errors.sentences == 3
    assert 0 < errors.found <= sum(better)
    assert decoder_of(toy, sentences).search_errors(features, 100) == (0, 4)
    tokens = [sentence.encode().split() for sentence in sentences]
    workers = Workers(System.of_ini(toy.ini), tokens, SearchLimits(2, 1), 2)
    assert workers.search_errors(features, 3).sentences == 2  # those of the first process
    workers.close()


def test_weights_can_change(tmp_path):
    toy = make_toy(tmp_path / "toy")
    decoder = decoder_of(toy, ["a b c d"])
    before = decoder.translate(0)[0]
    other = decoder.features.with_weights(-decoder.features.weights[decoder.features.tuneable])
    assert decoder.translate(0, features=other)[0].words != before.words
    again = decoder.translate(0, features=decoder.features)[0]
    assert (again.words, again.score) == (before.words, before.score)
    assert decoder.features == FeatureSet.of_ini(toy.ini)


def test_odd_input(tmp_path):
    """What real Moses does with the same input (tried with a build of it)."""
    toy = make_toy(tmp_path / "toy")
    sentences = ["", "x y", "a|f b", "|||x a", "<b>a</b> &amp; [X]", "a b " * 60]
    decoder = decoder_of(toy, sentences, SearchLimits(50, 50))
    empty, unknown, factors, pipes, markup, long = (
        decoder.translate(number)[0] for number in range(len(sentences))
    )
    assert (empty.words, empty.score) == ((), 0.0)
    assert not empty.features.any()
    assert sorted(unknown.words) == [b"x", b"y"]
    assert unknown.score < -190
    assert decoder_of(toy, ["a b"]).translate(0)[0].words == factors.words
    assert b"" not in pipes.words
    assert set(pipes.words) <= {b"A", b"B", b"C", b"D", b"E"}
    assert {b"<b>a</b>", b"&amp;", b"[X]"} == set(markup.words)
    assert len(long.words) > 30
    lines = format_nbest(0, [empty], decoder.features)
    assert lines.startswith(b"0 |||  ||| LR0= 0 0 0 0 0 0 Distortion0= 0 LM0= 0 WordPenalty0= 0 ")
    assert lines.endswith(b" ||| 0\n")


def test_estimates_of_uncovered_words_against_all_joins(tmp_path):
    """The best of a span's options and of any two parts of it (`CalcEstimatedScore` of Moses)."""
    decoder = decoder_of(make_toy(tmp_path / "toy"), ["a b c d x a a b d"])
    options, phrases = decoder._weighted, decoder._options.spans[0]
    size, width = phrases.shape
    best = np.full((size + 1, size + 1), -np.inf)
    for length in range(1, size + 1):
        for start in range(size - length + 1):
            end = start + length
            phrase = phrases[start, length - 1] if length <= width else -1
            if phrase >= 0 and options.size[phrase]:
                best[start, end] = options.estimate[options.order[options.first[phrase]]]
            for middle in range(start + 1, end):
                best[start, end] = max(best[start, end], best[start, middle] + best[middle, end])
    found = estimates_of(phrases, options)
    for start in range(size):
        np.testing.assert_allclose(
            found.future[start, 1 : size - start + 1], best[start, start + 1 :], atol=1e-9
        )
    np.testing.assert_allclose(found.rest, [*best[:size, size], 0], atol=1e-9)


@pytest.mark.parametrize("sentences", [[], [""], ["", ""]])
def test_no_words_at_all(tmp_path, sentences):
    for settings in ({}, {"types": (), "models": 0}):
        decoder = decoder_of(make_toy(tmp_path / f"toy{len(settings)}", **settings), sentences)
        assert [decoder.translate(n)[0].words for n in range(len(sentences))] == [()] * len(
            sentences
        )


def test_a_very_long_line(tmp_path):
    """A text without line ends, by mistake: slow, but it ends."""
    decoder = decoder_of(make_toy(tmp_path / "toy"), ["a b c " * 700], SearchLimits(3, 3))
    (hypothesis,) = decoder.translate(0)
    assert len(hypothesis.words) > 500


def test_nbest_lists_are_written_and_read_as_moses_does(tmp_path):
    toy = make_toy(tmp_path / "toy")
    decoder = decoder_of(toy, ["a b", "", "c x"])
    decoder.write_nbest(decoder.features, 5, tmp_path / "n.gz")
    content = gzip.decompress((tmp_path / "n.gz").read_bytes())
    first, *_ = content.split(b"\n")
    assert first.count(b" ||| ") == 3
    assert b"  ||| LR0= " in first
    lists = list(read_nbest(tmp_path / "n.gz", decoder.features, 3))
    assert len(lists) == 3
    assert lists[1][0].words == ()
    for hypothesis in (h for hypotheses in lists for h in hypotheses):
        tuneable = decoder.features.weights[decoder.features.tuneable]
        unknown = -100 if b"x" in hypothesis.words else 0
        assert hypothesis.features @ tuneable + unknown == pytest.approx(hypothesis.score, abs=1e-3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"0 ||| A ||| LM0= -1", "expected sentence"),
        (b"x ||| A ||| {} ||| -1", "expected sentence"),
        (b"7 ||| A ||| {} ||| -1", "expected a sentence from 0 to 1, found 7"),
        (b"0 ||| A ||| LM0= -1 ||| -1", "line 1: expected the features LR0:6"),
    ],
)
def test_damaged_nbest_lists(tmp_path, line, message):
    features = FeatureSet.of_ini(make_toy(tmp_path / "toy").ini)
    values = features.template() % tuple([0.0] * len(features.names))
    (tmp_path / "n").write_bytes(line.replace(b"{}", values) + b"\n")
    with pytest.raises(MosesFeatureError, match=message):
        list(read_nbest(tmp_path / "n", features, 2))


def test_features_in_another_order_are_understood(tmp_path):
    features = FeatureSet.of_ini(make_toy(tmp_path / "toy", types=()).ini)
    text = b"TM0= 1 2 Distortion0= 3 WordPenalty0= 4 LM0= 5 PhrasePenalty0= 6"
    assert features.values(text) == [3, 5, 4, 6, 1, 2]


def test_the_number_of_processes_does_not_matter(tmp_path):
    toy = make_toy(tmp_path / "toy")
    sentences = [s.encode().split() for s in ("a b c", "d", "", "b x a", "c c", "a d")]
    system = System.of_ini(toy.ini)
    alone = EmbeddedDecoder(system, sentences)
    alone.write_nbest(alone.features, 7, tmp_path / "alone.gz")
    workers = Workers(system, sentences, SearchLimits(), 3)
    try:
        for _ in range(2):
            workers.write_nbest(workers.features, 7, tmp_path / "together.gz")
    finally:
        workers.close()
    both = [gzip.decompress((tmp_path / f"{n}.gz").read_bytes()) for n in ("alone", "together")]
    assert both[0] == both[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone.gz", "together.gz", "toy"]


def test_an_error_in_a_process_is_reported(tmp_path):
    toy = make_toy(tmp_path / "toy")
    (toy.folder / "table0").write_text("a ||| A ||| 0.5\n")
    with pytest.raises(MosesFeatureError, match="table0 at line 1: expected 2 scores"):
        Workers(System.of_ini(toy.ini), [[b"a"], [b"a"]], SearchLimits(), 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "PhrasePenalty\n",
            "ConstrainedDecoding name=PhrasePenalty0 path=x\n",
            "line 13: expected a feature function",
        ),
        ("order=3", "order=3 lmodel-dub=1", "expected keys of KENLM that can be followed"),
        (" factor=0 path", " factor=1 path", "expected factor=0, found factor=1"),
        (f"type={TYPE}", "type=hier-msd-bidirectional-fe", "cannot decode 'hier'"),
        (f"type={TYPE}", "type=wbe-bidirectional-fe", "expected one of msd, mslr"),
        (f"type={TYPE}", "type=msd-backward-fe", "expected 3 weights for msd-backward-fe, found 6"),
        ("0 T 0", "0 T 0\n0 G 0", r"\[mapping\]: expected each phrase table as"),
        ("[distortion-limit]\n6", "[drop-unknown]\n1", r"\[drop-unknown\] cannot be followed"),
        ("[distortion-limit]\n6", "[stack]\nmany", r"\[stack\]: expected a number"),
        ("[input-factors]\n0", "[input-factors]\n0\n1", "expected 0 alone: one factor"),
        ("lm0.arpa", "none.arpa", "expected a file for LM0, found none"),
        ("Distortion\n", "Distortion\nDistortion name=D2\n", "expected one Distortion, found 2"),
        ("WordPenalty0= -0.3\n", "", "expected weights for WordPenalty0, found none"),
    ],
)
def test_what_cannot_be_decoded_is_refused(tmp_path, old, new, message):
    toy = make_toy(tmp_path / "toy")
    path = toy.folder / "moses.ini"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(MosesFeatureError, match=message):
        System.of_ini(toy.ini)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a ||| A ||| 0.5 0.5 0.5", "expected 2 scores, as the ini says, found 3"),
        ("a ||| A ||| 0.5 -1", "expected scores of 0 or more"),
        ("a ||| A ||| 0.5 x", "expected scores of 0 or more"),
        ("a ||| A ||| 0.5 inf", "expected scores of 0 or more"),
        ("a ||| A", "expected 3 to 7 fields"),
    ],
)
def test_damaged_tables(tmp_path, line, message):
    toy = make_toy(tmp_path / "toy")
    (toy.folder / "table0").write_text("b ||| B ||| 1 1\n" + line + "\n")
    with pytest.raises(FormatError, match=f"table0 at line 2: {message}"):
        decoder_of(toy, ["a b"])
    (toy.folder / "table0").write_text("b ||| B ||| 1 1\n")
    (toy.folder / "reordering0").write_text("b ||| B\n")
    with pytest.raises(FormatError, match="reordering0 at line 1"):
        decoder_of(toy, ["a b"])


def test_a_damaged_language_model(tmp_path):
    toy = make_toy(tmp_path / "toy")
    (toy.folder / "lm0.arpa").write_text("nonsense\n")
    with pytest.raises(
        MosesFeatureError,
        match=r"lm0.arpa at line 1: expected .data., an ARPA file, found 'nonsense'",
    ):
        decoder_of(toy, ["a"])


def test_default_scores_of_reordering(tmp_path):
    """Pairs that are not in the table have the default scores, if there are any."""
    toy = make_toy(tmp_path / "toy")
    (toy.folder / "reordering0").write_text("")
    without = decoder_of(toy, ["a b"]).translate(0)[0]
    path = toy.folder / "moses.ini"
    path.write_text(path.read_text().replace("type=", "default-scores=1,1,0.5,1,1,1 type="))
    with_default = decoder_of(toy, ["a b"]).translate(0, 100)
    assert not without.features[:6].any()
    assert min(h.features[:6].min() for h in with_default) <= np.log(0.5)


def test_types_of_reordering():
    with pytest.raises(UsageError, match="only wbe, phrase, msd, mslr"):
        ReorderingType.parse("msd-sideways-fe")
    assert ReorderingType.parse(TYPE).features == 6
    assert ReorderingType.parse("mslr-bidirectional-fe-collapseff").features == 2
    assert ReorderingType.parse("mslr-bidirectional-fe-collapseff").scores == 8
    assert ReorderingType.parse(TYPE).on_target
    assert not ReorderingType.parse("phrase-msd-backward-f").on_target


@pytest.fixture
def golden(monkeypatch) -> Path:
    folder = SHARED / "multi30k-en-fr"
    monkeypatch.chdir(folder)  # the paths in its inis are relative
    return folder / "golden"


@pytest.fixture
def multi30k(golden) -> EmbeddedDecoder:  # noqa: ARG001  # changes the directory
    sentences = [line.split() for line in Path("dev.en").read_bytes().splitlines()]
    system = System.of_ini(MosesIni.read("tuned.ini"))
    return EmbeddedDecoder(system, sentences, SearchLimits(1000, 1000))


def golden_nbest(path: Path, features: FeatureSet, count: int):
    return list(read_nbest(path, features, count))


@pytest.mark.slow
@needs_shared
@pytest.mark.slow
def test_real_moses_finds_the_same_translations(golden, multi30k):
    """Cube pruning, pop limit 1000, on the whole development set of Multi30k."""
    found = [multi30k.translate(sentence)[0] for sentence in range(len(multi30k))]
    moses = (golden / "dev.cube1000.out").read_bytes().splitlines()
    same = sum(b" ".join(h.words) == line.strip() for h, line in zip(found, moses, strict=True))
    assert same / len(found) >= 0.97
    lists = golden_nbest(golden / "dev.cube1000.nbest100.gz", multi30k.features, len(multi30k))
    total = sum(hypotheses[0].score for hypotheses in lists)
    assert sum(hypothesis.score for hypothesis in found) >= total - 0.001 * abs(total)
    references = [References([line.split()]) for line in Path("dev.fr").read_bytes().splitlines()]
    statistics = [r.statistics([h.words])[0] for r, h in zip(references, found, strict=True)]
    assert 100 * BLEU.quality(np.sum(statistics, axis=0)) == pytest.approx(57.15, abs=0.1)


@pytest.mark.slow
@needs_shared
@pytest.mark.slow
def test_real_moses_has_the_same_features(golden, multi30k):
    """Of every hypothesis in both 100-best lists; a few have another derivation in one of them."""
    lists = golden_nbest(golden / "dev.cube1000.nbest100.gz", multi30k.features, len(multi30k))
    weights = multi30k.features.weights[multi30k.features.tuneable]
    compared = other_derivations = 0
    for sentence in range(0, len(multi30k), 5):
        mine = {h.words: h for h in multi30k.translate(sentence, 100)}
        for hypothesis in lists[sentence]:
            twin = mine.get(hypothesis.words)
            if twin is None:
                continue
            compared += 1
            if np.abs(twin.features - hypothesis.features).max() > 1e-3:
                # another way to the same words: it has another score
                assert abs(twin.score - hypothesis.score) > 1e-5
                other_derivations += 1
            else:
                assert twin.score == pytest.approx(hypothesis.score, abs=2e-3)
            unknown = twin.score - twin.features @ weights
            assert unknown == pytest.approx(round(unknown / 100) * 100, abs=1e-6)
    assert compared > 10_000
    assert other_derivations < 0.02 * compared
