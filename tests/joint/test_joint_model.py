"""The joint language model: against plain float64 code, out of torch, and as Moses reads it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.files import write_gz
from helpers.toy import (
    JOINT_SIZES,
    SOURCE,
    TARGET,
    joint_score,
    plain_affiliations,
    random_joint_model,
)

from moses_feature.cslm.settings import LmSettings
from moses_feature.joint.nplm import JointFiles, load_joint_model, write_joint_nplm
from moses_feature.joint.scorer import JointModel
from moses_feature.joint.settings import JOINT_ARCHITECTURE, JOINT_PRESETS, JointData, JointSizes
from moses_feature.joint.texts import AlignedText, affiliations
from moses_feature.joint.training import JointLM, train_joint_model
from moses_feature.networks.files import ModelFiles, write_model_files
from moses_feature.networks.vocabulary import END, Vocabulary
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.training.trainer import RunControl

CPU = torch.device("cpu")


@pytest.mark.parametrize("words", [(1, 1), (3, 2), (2, 5), (6, 6)])
def test_affiliations_are_the_plain_ones(words):
    """Links in any order, some twice, words without any."""
    random = np.random.default_rng(words)
    source, target = words
    for _ in range(50):
        count = random.integers(1, source * target + 1)
        links = [
            f"{s}-{t}"
            for s, t in zip(
                random.integers(0, source, count), random.integers(0, target, count), strict=True
            )
        ]
        text = "  ".join(links)
        found = affiliations(text.encode(), source, target)
        assert found.tolist() == plain_affiliations(text, target)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (b"", "none"),
        (b"0", "'0'"),
        (b"0-", "'0-'"),
        (b"a-0", "'a-0'"),
        (b"0-0x", "'0-0x'"),
        (b"0-0-0", "'0-0-0'"),
        (b"-1-0", "'-1-0'"),
        (b"2-0", "'2-0'"),
        (b"0-3", "'0-3'"),
        (b"99999999999999999999-0", "'99999999999999999999-0'"),
    ],
)
def test_bad_links(links, message):
    with pytest.raises(ValueError, match=r"expected|links|alignments") as error:
        affiliations(links, 2, 3)
    assert error.value.args[1] == message


def model_of(files: ModelFiles, normalised: bool = True) -> JointModel:
    source, target = files.vocabularies.values()
    return JointModel(JOINT_SIZES, dict(files.weights), source, target, normalised, {})


@pytest.fixture
def files() -> ModelFiles:
    """Return the files of a model with random weights."""
    return random_joint_model(np.random.default_rng(5))


SENTENCES = [["a", "b", "x", "c"], ["d"], ["c", "c", "b", "a", "a"]]


def contexts_beside(model: JointModel, count: int = 60) -> tuple[np.ndarray, np.ndarray, list]:
    """Return contexts, words, and the sentence and place of each."""
    random = np.random.default_rng(3)
    windows = model.read([[word.encode() for word in words] for words in SENTENCES])
    contexts, words, places = [], [], []
    for _ in range(count):
        sentence = int(random.integers(len(SENTENCES)))
        place = int(random.integers(len(SENTENCES[sentence])))
        ids = random.integers(0, len(model.target), 3)
        contexts.append([windows[sentence][place], *ids[:2]])
        words.append(ids[2])
        places.append((sentence, place))
    return np.array(contexts), np.array(words), places


def plain_log_prob(files: ModelFiles, sentence: int, place: int, context, word) -> float:
    """Return log p in float64, by way of a target sentence where it can be."""
    weights = {name: array.astype(np.float64) for name, array in files.weights.items()}
    source, target = files.vocabularies.values()
    ids = source.ids([word.encode() for word in SENTENCES[sentence]])
    window = [ids[n] if 0 <= n < len(ids) else END for n in range(place - 1, place + 2)]
    seen = [weights["source_projection.weight"][n] for n in window]
    units = np.concatenate([*seen, *(weights["projection.weight"][n] for n in context)])
    for layer in ("first", "second"):
        units = np.maximum(0, weights[f"{layer}.weight"] @ units + weights[f"{layer}.bias"])
    logits = weights["output.weight"] @ units + weights["output.bias"]
    assert len(logits) == len(target)
    return float(logits[word] - math.log(np.exp(logits).sum()))


@pytest.mark.parametrize("normalised", [True, False])
def test_out_of_torch_it_is_the_plain_one(files, normalised):
    model = model_of(files, normalised)
    contexts, words, places = contexts_beside(model)
    expected = [
        plain_log_prob(files, *place, context[1:], word)
        for place, context, word in zip(places, contexts, words, strict=True)
    ]
    if not normalised:
        expected += model.log_norms(contexts)
    whole = model.log_probs(contexts, words)
    assert np.abs(whole - expected).max() < 1e-5
    ones = [model.log_probs(contexts[n : n + 1], words[n : n + 1])[0] for n in range(len(words))]
    np.testing.assert_allclose(ones, whole, atol=1e-5)
    # Another text takes the places of the windows, and nothing of the old one is left.
    model.read([[b"d"]])
    again, _, _ = contexts_beside(model)
    assert np.array_equal(again, contexts)
    assert np.array_equal(model.log_probs(contexts, words), whole)


def test_the_network_is_the_plain_one(files):
    """In torch, and its gradients by finite differences in float64."""
    source, target = files.vocabularies.values()
    network = JointLM(JOINT_SIZES, len(source), len(target)).double()
    state = {name: torch.from_numpy(array).double() for name, array in files.weights.items()}
    for name in ("projection.weight", "source_projection.weight"):
        state[name] = state[name][:-1]  # the last row is of a word that is not known
    network.load_state_dict(state)
    model = model_of(files)
    contexts, words, places = contexts_beside(model, 20)
    ids = []
    for (sentence, place), context in zip(places, contexts, strict=True):
        of_source = source.ids([word.encode() for word in SENTENCES[sentence]])
        padded = [END, *of_source, END]
        ids.append([*padded[place : place + 3], *context[1:]])
    batch = torch.tensor(np.array(ids)), torch.from_numpy(words)
    log_probs, log_norms = network(*batch)
    assert np.abs(log_probs.detach().numpy() - model.log_probs(contexts, words)).max() < 1e-5
    assert np.abs(log_norms.detach().numpy() - model.log_norms(contexts)).max() < 1e-5
    network.zero_grad()
    log_probs.sum().backward()
    gradient = network.source_projection.weight.grad
    with torch.no_grad():
        weight = network.source_projection.weight
        for place in [(0, 0), (2, 1), (3, 2)]:
            values = []
            for step in (1e-6, -2e-6):
                weight[place] += step
                values.append(network(*batch)[0].sum().item())
            weight[place] += 1e-6
            numeric = (values[0] - values[1]) / 2e-6
            assert gradient[place].item() == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def write_pairs(folder: Path, count: int = 200) -> JointData:
    """Write texts in which each target word is that of a source word, and its alignment."""
    random = np.random.default_rng(2)
    sources, targets, alignments = [], [], []
    for _ in range(count):
        words = random.integers(0, 8, random.integers(1, 7))
        order = random.permutation(len(words))
        sources.append(" ".join(f"s{word}" for word in words))
        targets.append(" ".join(f"t{words[place]}" for place in order))
        alignments.append(" ".join(f"{s}-{t}" for t, s in enumerate(order)))
    (folder / "source").write_text("\n".join(sources) + "\n")
    (folder / "target").write_text("\n".join(targets) + "\n")
    write_gz(folder / "links.gz", ("\n".join(alignments) + "\n").encode())
    return JointData(*(str(folder / name) for name in ("source", "target", "links.gz")))


def test_a_window_has_the_same_scores_beside_any_others(files):
    """To rounding: products of matrices depend on the number of their rows."""
    generator = np.random.default_rng(5)
    sizes, vocabularies = JOINT_PRESETS["small"], files.vocabularies.values()
    shapes = sizes.joint_shapes(*map(len, vocabularies)).items()
    weights = {name: generator.normal(0, 0.1, of).astype(np.float32) for name, of in shapes}
    model = JointModel(sizes, weights, *vocabularies, True, {})
    windows = generator.integers(0, len(model.source), (1283, model.sizes.source_words))
    sums = model._window_sums(windows)
    order = generator.permutation(len(windows))
    found = model._window_sums(windows[order])
    np.testing.assert_allclose(found, sums[order], rtol=1e-5, atol=1e-5)
    for place in (0, 1, 63, 64, 1282):
        found = model._window_sums(windows[[place]])
        np.testing.assert_allclose(found, sums[[place]], rtol=1e-5, atol=1e-5)


def test_contexts_of_a_text(tmp_path):
    """Source words around, target words before, END beyond both ends; ends are not predicted."""
    (tmp_path / "source").write_text("a b c\n\nd\nb\na a\n")
    (tmp_path / "target").write_text("A B\nC\nD D\nB\nC A\n")
    (tmp_path / "links").write_text("2-0 0-1\n0-0\n0-1\n\n1-0 0-0 1-1\n")
    text = AlignedText(JointData(*(str(tmp_path / n) for n in ("source", "target", "links"))))
    assert text.left_out == 2
    source, target = Vocabulary((b"a", b"b", b"c", b"d")), Vocabulary((b"A", b"B", b"C", b"D"))
    ngrams = text.ngrams(source, target, JOINT_SIZES)
    expected = []
    for words, links in (("a b c|A B", [2, 0]), ("d|D D", [0, 0]), ("a a|C A", [0, 1])):
        of_source, of_target = (side.encode().split() for side in words.split("|"))
        padded = [END, *source.ids(of_source), END]
        before = [END, END, *target.ids(of_target)]
        expected += [
            [*padded[place : place + 3], *before[n : n + 3]] for n, place in enumerate(links)
        ]
    rows = np.flatnonzero(ngrams.predicted())
    found = np.hstack([ngrams.contexts(rows), ngrams.words(rows)[:, None]])
    assert found.tolist() == expected
    assert len(ngrams) == len(expected) + 3  # and the ends


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "links",
            "0-0\n",
            "source at line 2: expected as many lines in both .* the end of .*links",
        ),
        ("source", "a\nb\nc\n", "source at line 3: expected as many lines .* the end of .*target"),
        ("links", "0-0\n0-1\n", "links at line 2: expected links between 1 source and 1 target"),
        ("links", "0-0\n0:0\n", "links at line 2: expected word alignments, .* found '0:0'"),
        ("links", "\n\n", "expected sentence pairs with word alignments, found none"),
    ],
)
def test_what_cannot_be_trained_on(tmp_path, name, content, message):
    for file, text in {"source": "a\nb\n", "target": "A\nB\n", "links": "0-0\n0-0\n"}.items():
        (tmp_path / file).write_text(content if file == name else text)
    data = JointData(*(str(tmp_path / file) for file in ("source", "target", "links")))
    settings = LmSettings(sizes=JOINT_SIZES, updates=1)
    with pytest.raises(MosesFeatureError, match=message):
        train_joint_model(data, settings, tmp_path / "m", CPU)
    assert not (tmp_path / "m" / "model.safetensors").exists()


@pytest.mark.slow
def test_it_learns_which_word_it_belongs_to_and_a_run_goes_on(tmp_path):
    """A target word is certain beside its source word, and nothing else tells it."""
    data = write_pairs(tmp_path, 1500)
    sizes = JointSizes(order=2, projection=8, first=32, second=16, source_window=1)
    settings = LmSettings(
        sizes=sizes, learning_rate=0.01, epochs=4, self_normalisation=0.1, batch_size=32
    )
    train_joint_model(data, settings, tmp_path / "whole", CPU)
    model = JointModel.load(tmp_path / "whole")
    assert not model.normalised
    assert model.training["held_out_loss"] < 0.1
    done = 0

    def stop() -> bool:
        nonlocal done
        done += 1
        return done == 200

    reason = train_joint_model(data, settings, tmp_path / "p", CPU, RunControl(stop=stop))
    assert reason == "interrupted"
    train_joint_model(data, settings, tmp_path / "p", CPU, RunControl(resume=True))
    whole, parts = (tmp_path / n / "model.safetensors" for n in ("whole", "p"))
    assert whole.read_bytes() == parts.read_bytes()


def scores_of_moses(files: JointFiles, source: list[str], target: list[str], places) -> float:
    """Return the sum of scores as Moses computes them from the files (`BiLM_NPLM.cpp`)."""
    sections: dict[str, list[str]] = {}
    for line in Path(files.path).read_text().split("\n"):
        if line.startswith("\\"):
            name = line
            sections[name] = []
        elif line:
            sections[name].append(line)
    matrices = {
        name: np.array([[float(x) for x in row.split()] for row in rows])
        for name, rows in sections.items()
        if "weights" in name or "biases" in name or "embeddings" in name
    }
    target_words = Path(files.target_vocab).read_text().split()
    source_words = Path(files.source_vocab).read_text().split()
    target_ids = {word: n for n, word in enumerate(target_words)}
    source_ids = {word: n + len(target_words) for n, word in enumerate(source_words)}
    config = dict(line.split(" ") for line in sections["\\config"])
    window = files.source_window
    assert int(config["ngram_size"]) == 2 * window + 1 + files.order
    total = 0.0
    for n, place in enumerate(places):
        ids = []
        for j in range(place - window, place + window + 1):
            word = "<s>" if j < 0 else "</s>" if j >= len(source) else source[j]
            ids.append(source_ids.get(word, len(target_words)))
        history = ["<s>" if j < 0 else target[j] for j in range(n - files.order + 1, n + 1)]
        ids += [target_ids.get(word, 0) for word in history]
        units = np.concatenate([matrices["\\input_embeddings"][i] for i in ids[:-1]])
        for layer in (1, 2):
            weights, biases = (
                matrices[f"\\hidden_{what} {layer}"] for what in ("weights", "biases")
            )
            units = np.maximum(0, weights @ units + biases[:, 0])
        total += matrices["\\output_weights"][ids[-1]] @ units
        total += matrices["\\output_biases"][ids[-1], 0]
    return total


def test_moses_reads_what_is_exported(files, tmp_path):
    model = model_of(files, normalised=False)
    exported = write_joint_nplm(tmp_path / "nnjm", model)
    back = load_joint_model(exported)
    random = np.random.default_rng(4)
    for _ in range(30):
        source = [*random.choice([*SOURCE, "x"], random.integers(1, 6))]
        target = [*random.choice([*TARGET, "y"], random.integers(1, 6))]
        places = random.integers(0, len(source), len(target)).tolist()
        expected = scores_of_moses(exported, source, target, places)
        for one in (model, back):
            (windows,) = one.read([[word.encode() for word in source]])
            ids = [END, END, *one.ids([word.encode() for word in target])]
            contexts = np.array([[windows[p], *ids[n : n + 2]] for n, p in enumerate(places)])
            found = one.log_probs(contexts, np.array(ids[2:])).sum(dtype=np.float64)
            assert found == pytest.approx(expected, abs=1e-5)
    normalised = model_of(files)
    (windows,) = normalised.read([[b"a", b"b"]])
    ids = [END, END, *normalised.ids([b"B", b"A"])]
    contexts = np.array([[windows[1], *ids[:2]], [windows[0], *ids[1:3]]])
    found = normalised.log_probs(contexts, np.array(ids[2:])).sum()
    assert found == pytest.approx(joint_score(files, ["a", "b"], ["B", "A"], [1, 0]), abs=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": 4}, "expected n-grams of 7 words as the ini says, found 6"),
        ({"source_vocab": "short"}, "expected .* words in both lists"),
        ({"target_vocab": "empty"}, "expected a word on each line, found an empty file"),
        ({"source_vocab": "missing"}, "missing: No such file"),
        ({"order": 33}, "order: expected 2 to 32, found 33, in the ini"),
        ({"source_vocab": "nnjm.target", "target_vocab": "nnjm.source"}, "in their order, found"),
        ({"target_vocab": "twice"}, "twice at line 3: expected one word, which no other line has"),
        ({"target_vocab": "words"}, "words at line 2: expected one word, .* found 'a b"),
        ({"target_vocab": "other"}, "other at line 1: expected <unk>, which .* found 'A'"),
    ],
)
def test_files_that_do_not_belong_together(files, tmp_path, change, message):
    exported = write_joint_nplm(tmp_path / "nnjm", model_of(files))
    (tmp_path / "short").write_text("<unk>\n<s>\n</s>\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "twice").write_text("<unk>\n<s>\n<s>\n")
    (tmp_path / "words").write_text("<unk>\na b\n")
    (tmp_path / "other").write_text("A\n<unk>\n")
    changed = {
        name: str(tmp_path / value) if isinstance(value, str) else value
        for name, value in change.items()
    }
    with pytest.raises(MosesFeatureError, match=message):
        load_joint_model(JointFiles(**{**vars(exported), **changed}))


def test_a_model_directory_must_be_that_of_the_ini(files, tmp_path):
    write_model_files(tmp_path / "m", JOINT_ARCHITECTURE, files)
    with pytest.raises(MosesFeatureError, match="source_window 2 as the ini says, found 1"):
        load_joint_model(JointFiles(str(tmp_path / "m"), 3, 2))
    (tmp_path / "m" / "config.json").write_text(
        '{"format_version": 1, "architecture": "feed-forward-joint-lm", "training": {},'
        ' "sizes": {"order": 3}}'
    )
    with pytest.raises(FormatError, match="sizes"):
        JointModel.load(tmp_path / "m")


def test_commands(tmp_path, run):
    """Train, describe, export, put into an ini, and rescore."""
    write_pairs(tmp_path)
    train = ("model", "train-joint", "source", "target", "m", "--alignment", "links.gz")
    run(*train, "--updates", 5, "--threads", 1, "--sizes", "projection=4 first=8 second=4")
    shown = run("describe", "m").stdout
    assert "source window          5" in shown
    assert "source words           8" in shown
    assert "trained on             links.gz (alignment, 200 lines)" in shown
    exported = run("model", "export", "m", "nplm", "--format", "nplm")
    assert "Moses will not normalise" in exported.stderr
    assert exported.stdout == (
        f"BilingualNPLM name=NNJM0 order=4 source_window=5 path={tmp_path}/nplm "
        f"source_vocab={tmp_path}/nplm.source target_vocab={tmp_path}/nplm.target\n"
    )
    (tmp_path / "moses.ini").write_text("[feature]\nWordPenalty\n\n[weight]\nWordPenalty0= -1\n")
    run("system", "add", "moses.ini", "new.ini", "--model", "m", "--weight", "0.2")
    assert (tmp_path / "new.ini").read_text() == (
        f"[feature]\nWordPenalty\nBilingualNPLM name=NNJM0 order=4 source_window=5 "
        f"path={tmp_path}/m\n\n[weight]\nWordPenalty0= -1\nNNJM0= 0.2\n"
    )
    run("system", "add", "moses.ini", "x.ini", "--model", "m", "--table", "m", exit_code=2)
    (tmp_path / "text").write_text("s1 s2\n")
    (tmp_path / "list").write_text("0 ||| t2 t1  ||| LM0= 1 ||| -3 ||| 1-0 0-1 \n")
    run("list", "rescore", "list", "out", "--model", "m", "--source", "text")
    model = JointModel.load(tmp_path / "m")
    (windows,) = model.read([[b"s1", b"s2"]])
    ids = [END, END, END, *model.ids([b"t2", b"t1"])]
    contexts = np.array([[windows[1], *ids[:3]], [windows[0], *ids[1:4]]])
    expected = model.log_probs(contexts, np.array(ids[3:])).sum(dtype=np.float64)
    line = (tmp_path / "out").read_text()
    assert line == f"0 ||| t2 t1  ||| LM0= 1 NNJM0= {expected:.6g} ||| -3 ||| 1-0 0-1 \n"
    for links, message in (
        ("", "list at line 1: expected word alignments behind the total"),
        ("||| 0=0 1=1", "list at line 1: expected word alignments behind the total"),
        ("||| 0=0 ||| 2-0", "list at line 1: expected links between 2 source and 2 target words"),
    ):
        (tmp_path / "list").write_text(f"0 ||| t2 t1 ||| LM0= 1 ||| -3 {links}\n")
        failed = run(
            "list", "rescore", "list", "x", "--model", "m", "--source", "text", exit_code=1
        )
        assert message in failed.stderr
        assert not (tmp_path / "x").exists()
    run("list", "rescore", "list", "x", "--model", "m", exit_code=2)
    (tmp_path / "text").write_text("\n")
    (tmp_path / "list").write_text("0 |||  ||| LM0= 0 ||| 0 |||  \n")
    run("list", "rescore", "list", "out", "--model", "m", "--source", "text")
    assert (tmp_path / "out").read_text() == "0 |||  ||| LM0= 0 NNJM0= 0 ||| 0 |||  \n"
    (tmp_path / "train.source").write_text("precious\n")
    assert (
        "no list of words"
        in run("model", "export", "m", "train", "--format", "nplm", exit_code=2).stderr
    )
    run("model", "export", "m", "a name", "--format", "nplm", exit_code=1)
    assert not (tmp_path / "a name").exists()
    run("model", "export", "m", "nplm", "--format", "nplm")  # again
