"""What a report says of refining, against plain counting and scores in float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.equations import reference_log_probs
from helpers.models import random_model

from moses_feature.moses.lines import digest_of, read_text
from moses_feature.phrases.model import load_model, save_model
from moses_feature.phrases.table_words import TableWords
from moses_feature.report.refining import BEST, offered_pairs, refining

FILES = {
    "source text": b"the dog\nthe dog zebra\nthe a\n",
    "reference": b"le chien\nchien le noir\nle A\n",
    "n-best lists": b"0 ||| le chien ||| LM0= 1 ||| 1 ||| 0=0 1=1\n"
    b"0 ||| chien le ||| LM0= 1 ||| 1 ||| 0-1=0-1\n"
    b"1 ||| le chien noir ||| LM0= 1 ||| 1 ||| 0=0 1=1 2=2\n"
    + b"2 ||| le A ||| LM0= 1 ||| 1 ||| 0=0 1=1\n" * BEST
    + b"2 ||| noir A ||| LM0= 1 ||| 1 ||| 0=0 1=1\n",
}


@pytest.fixture
def paths(tmp_path):
    for role, content in FILES.items():
        (tmp_path / role).write_bytes(content)
    return {role: str(tmp_path / role) for role in FILES}


@pytest.fixture
def refined(tmp_path, paths):
    save_model(tmp_path / "before", random_model(seed=1))
    inputs = [{"role": r, "path": path, "sha256": digest_of(path)} for r, path in paths.items()]
    training = {
        "inputs": inputs,
        "refined_from": str(tmp_path / "before"),
        "refined_model": load_model(tmp_path / "before").digest,
    }
    return replace(random_model(seed=2), training=training)


def test_what_is_offered(paths):
    texts = [read_text(paths[role])[0] for role in ("source text", "reference")]
    offered = offered_pairs(paths["n-best lists"], *texts)
    found = {
        (b" ".join(s), b" ".join(t)): (of.sentence, of.right, of.sentences)
        for (s, t), of in offered.items()
    }
    assert found == {
        (b"the", b"le"): (0, 3, 3),
        (b"dog", b"chien"): (0, 2, 2),
        (b"the dog", b"chien le"): (0, 0, 1),
        (b"zebra", b"noir"): (1, 1, 1),
        (b"a", b"A"): (2, 1, 1),
    }


def test_what_moved(refined, tmp_path):
    (section,) = refining(refined, TableWords(escaped="no"))
    before = load_model(tmp_path / "before")
    changes = {}
    for source, target in ((b"the", b"le"), (b"dog", b"chien"), (b"the dog", b"chien le")):
        ids = before.source.ids(source.split()), before.target.ids(target.split())
        was, now = (float(reference_log_probs(m, *ids).sum()) for m in (before, refined))
        shown = f"<td>{source.decode()}</td><td>{target.decode()}</td><td>{was:.2f}</td>"
        assert f"{shown}<td>{now:.2f}</td>" in section.content
        changes[shown] = now - was
    assert "zebra</td><td>noir" not in section.content
    risen, fallen = section.content.split("Fallen")
    for part, falling in ((risen, False), (fallen, True)):
        order = sorted(changes, key=changes.__getitem__, reverse=not falling)
        places = [part.index(shown) for shown in order]
        assert places == sorted(places)


@pytest.mark.parametrize(
    "change",
    [
        {"refined_from": 5},
        {"refined_model": None},
        {"inputs": [{"role": "reference"}]},
        {"inputs": [5]},
    ],
)
def test_a_config_that_was_edited(refined, change):
    (section,) = refining(replace(refined, training=refined.training | change), TableWords())
    assert "expected what a network was trained on: a good '" in section.how_to_read


def test_what_is_not_known(refined, tmp_path):
    assert not list(refining(random_model(), TableWords()))
    (tmp_path / "reference").write_bytes(b"le chien\n")
    (section,) = refining(refined, TableWords())
    assert "reference has changed since then" in section.how_to_read
    (tmp_path / "reference").unlink()
    (section,) = refining(refined, TableWords())
    assert "No such file" in section.how_to_read
