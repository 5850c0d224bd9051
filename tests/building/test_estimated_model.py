"""Language models: against a plain twin, against lmplz's, and as KenLM reads them."""

from __future__ import annotations

import gzip
import math
import random
from functools import partial

import kenlm
import pytest
from helpers.files import SHARED, needs_shared
from helpers.plain_build import BEGIN, UNKNOWN, kneser_ney

from moses_feature.building import language_model, ngrams
from moses_feature.building.language_model import estimate
from moses_feature.building.settings import LARGEST_ORDER
from moses_feature.runtime import disk_arrays

WORDS = [b"a", b"b", b"cc", b"\xc3\xa9", b"}", *(b"w%d" % n for n in range(90))]


def random_text(seed: int, sentences: int = 300) -> list[tuple[bytes, ...]]:
    choose = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(WORDS))]  # so that some words are rare
    return [tuple(choose.choices(WORDS, weights, k=choose.randint(1, 8))) for _ in range(sentences)]


def parsed(content: bytes) -> dict[bytes, tuple[float, ...]]:
    """Return log10 p, and the back-off weight if there is one, of each n-gram."""
    rows = [line.split(b"\t") for line in content.splitlines() if b"\t" in line]
    return {row[1]: tuple(float(row[n]) for n in (0, 2) if n < len(row)) for row in rows}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", [2, 3, 4])
def test_against_a_plain_twin(seed, order):
    sentences = random_text(seed)
    found = parsed(b"".join(estimate(sentences, order).arpa()))
    expected = {b" ".join(gram): p for gram, p in kneser_ney(sentences, order).items()}
    assert found.keys() == {*expected, BEGIN}
    for gram, p in expected.items():
        assert found[gram][0] == pytest.approx(math.log10(p), abs=2e-6)


def test_words_outside_the_vocabulary_are_the_unknown_word(tmp_path):
    sentences, known = random_text(4), {*WORDS[:20]}
    content = b"".join(estimate(sentences, 3, vocabulary=known).arpa())
    mapped = [tuple(w if w in known else UNKNOWN for w in sentence) for sentence in sentences]
    found = parsed(content)
    expected = {b" ".join(gram): p for gram, p in kneser_ney(mapped, 3).items()}
    assert found.keys() == {*expected, BEGIN}
    for gram, p in expected.items():
        assert found[gram][0] == pytest.approx(math.log10(p), abs=2e-6)
    (tmp_path / "lm.arpa").write_bytes(content)
    model = kenlm.Model(str(tmp_path / "lm.arpa"))
    assert model.score("a w80 b") == model.score("a never-seen b")


def test_kenlm_reads_the_largest_order_and_no_larger_one(tmp_path):
    for order in (LARGEST_ORDER, LARGEST_ORDER + 1):
        content = b"".join(estimate(random_text(1), order).arpa())
        (tmp_path / f"{order}.arpa").write_bytes(content)
    assert kenlm.Model(str(tmp_path / f"{LARGEST_ORDER}.arpa")).order == LARGEST_ORDER
    with pytest.raises(OSError, match="max"):
        kenlm.Model(str(tmp_path / f"{LARGEST_ORDER + 1}.arpa"))


@pytest.mark.parametrize("prune", [(), (0, 0, 1), (0, 1)])
def test_probabilities_sum_to_one(tmp_path, prune):
    sentences = random_text(5)
    (tmp_path / "lm.arpa").write_bytes(b"".join(estimate(sentences, 3, prune).arpa()))
    model = kenlm.Model(str(tmp_path / "lm.arpa"))
    occurring = {word for sentence in sentences for word in sentence}
    words = [word.decode() for word in (*occurring, b"</s>", UNKNOWN)]
    for context in ([], ["a"], ["b", "a"], ["é", "cc"], ["}", "}"]):
        state, following = kenlm.State(), kenlm.State()
        model.BeginSentenceWrite(state)
        for word in context:
            model.BaseScore(state, word, following)
            state, following = following, kenlm.State()
        total = sum(10 ** model.BaseScore(state, word, kenlm.State()) for word in words)
        assert total == pytest.approx(1, abs=1e-5)


def test_pruned_n_grams_are_those_that_are_rare():
    sentences = random_text(6, 60)
    whole, pruned = (parsed(b"".join(estimate(sentences, 3, p).arpa())) for p in ((), (0, 0, 1)))
    padded = [b" ".join((BEGIN, *sentence, b"</s>")).split() for sentence in sentences]
    counts: dict[bytes, int] = {}
    for words in padded:
        for n in range(len(words) - 2):
            gram = b" ".join(words[n : n + 3])
            counts[gram] = counts.get(gram, 0) + 1
    assert whole.keys() - pruned.keys() == {gram for gram, count in counts.items() if count == 1}


def test_a_text_that_is_too_small_to_tell(caplog):
    found = parsed(b"".join(estimate([(b"a",), (b"a", b"b")], 2).arpa()))
    assert found[b"<s> a"][0] < 0
    assert "too few 1-grams that occur once, twice and three times" in caplog.text


def test_parts_on_disk_are_the_whole(tmp_path, monkeypatch):
    sentences = random_text(7)
    whole = b"".join(estimate(sentences, 4, (0, 0, 1)).arpa())
    monkeypatch.setattr(language_model, "TOGETHER", 50)
    monkeypatch.setattr(ngrams.grams_of, "__defaults__", (None, 4))
    lines, of_parts = (
        b"".join(estimate(sentences, 4, (0, 0, 1), folder=folder).arpa()).splitlines()
        for folder in (tmp_path, None)
    )
    assert lines == of_parts == whole.splitlines()
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tmp_path, monkeypatch):
    full = partial(open, "/dev/full", "wb")
    monkeypatch.setattr(disk_arrays, "TemporaryFile", lambda **_: full())
    with pytest.raises(OSError, match="No space left") as raised:
        estimate(random_text(8), 3, folder=tmp_path)
    assert raised.value.filename == str(tmp_path)


@needs_shared
def test_a_model_is_that_of_lmplz():
    folder = SHARED / "multi30k-en-fr"
    with gzip.open(folder / "train.fr.gz") as text:
        model = estimate((line.split() for line in text), 5)
    expected = parsed(gzip.decompress((folder / "model/lm.fr.arpa.gz").read_bytes()))
    found = parsed(b"".join(model.arpa()))
    assert found.keys() == expected.keys()
    for gram, values in expected.items():
        assert all(abs(a - b) < 1e-5 for a, b in zip(found[gram], values, strict=True)), gram
