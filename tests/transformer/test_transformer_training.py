"""Training a Transformer, and networks of subwords: what is learnt, kept and refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from moses_feature.cli.models.train_sentences import SentenceOptions, train_command
from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.rnnsearch.settings import RNNSEARCH_PRESETS
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.transformer.settings import TRANSFORMER_PRESETS

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
SMALL = ("--sizes", "units=24 heads=2 inner=32 encoder_layers=1 decoder_layers=1")
QUICK = ("--batch-size", 20, "--learning-rate", 0.01, "--subwords", 300)
TRANSFORMER = ("--architecture", "transformer", *SMALL, *QUICK)
RNNSEARCH = ("--sizes", "hidden=13 embedding=7 alignment=5 maxout=3")


@pytest.fixture(autouse=True)
def texts(tmp_path: Path) -> Path:
    """Write sentences whose translation is word for word, the last word first."""
    generator = np.random.default_rng(1)
    source, target = [], []
    for _ in range(400):
        words = [WORDS[n] for n in generator.integers(0, len(WORDS), generator.integers(1, 5))]
        source.append(" ".join(words))
        target.append(" ".join(word.upper() + "&apos;" for word in reversed(words)))
    (tmp_path / "source").write_text("\n".join(source) + "\n")
    (tmp_path / "target").write_text("\n".join(target) + "\n")
    return tmp_path


def train(run, *options, exit_code=0):
    return run("model", "train-sentences", "source", "target", *options, exit_code=exit_code)


@pytest.mark.slow
def test_it_learns_to_translate(run):
    """Words that it never saw together; their pieces make words again."""
    recipe = ("--updates", 1200, "--evaluate-every", 300, "--warmup", 50, "--dropout", 0)
    train(run, "m", *TRANSFORMER, *recipe, "--subwords", 360)
    generator = np.random.default_rng(2)
    lengths = generator.integers(2, 5, 50)
    text = [" ".join(generator.permutation(WORDS)[:n].astype(str)) for n in lengths]
    found = run("model", "translate", "m", stdin="\n".join(text).encode()).stdout.splitlines()
    expected = [" ".join(w.upper() + "&apos;" for w in reversed(line.split())) for line in text]
    assert np.mean([one == other for one, other in zip(found, expected, strict=True)]) > 0.6


def test_a_resumed_run_ends_with_the_same_bytes(run, tmp_path):
    options = (*TRANSFORMER, "--dropout", 0.2, "--evaluate-every", 4, "--warmup", 5)
    options = (*options, "--cooldown", 0)
    train(run, "whole", *options, "--updates", 12)
    train(run, "parts", *options, "--updates", 6)
    train(run, "parts", *options, "--updates", 12, "--resume")
    for name in ("model.safetensors", "source.pieces", "target.vocab"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


@pytest.mark.parametrize("options", [TRANSFORMER, (*RNNSEARCH, *QUICK)])
def test_both_sides_share_their_subwords(run, tmp_path, options):
    options = (*options, "--subwords-from", "both", "--evaluate-every", 2)
    for name, steps in {"whole": (4,), "parts": (2, 4)}.items():
        for updates in steps:
            resume = ("--resume",) if updates != steps[0] else ()
            train(run, name, *options, "--updates", updates, "--cooldown", 0, *resume)
    whole, parts = (tmp_path / name / "model.safetensors" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    model = SentenceModel(tmp_path / "whole")
    assert model.source.shortlist == model.target.shortlist
    assert {b"w", b"W"} <= {*model.source.shortlist}  # letters of either side
    weights = load_file(whole)
    if options[1] == "transformer":
        assert (weights["source_embedding.weight"] == weights["output_words.weight"]).all()
    else:
        assert (weights["source_embedding.weight"] != weights["target_embedding.weight"]).any()


def test_a_model_of_the_other_direction_is_found_out(run):
    """Though both sides have the same pieces."""
    train(run, "m", *TRANSFORMER, "--subwords", 360, "--subwords-from", "both", "--updates", 1)
    text = Path("target").read_bytes()
    refused = run("model", "translate", "m", stdin=text, exit_code=1).stderr
    assert "it is of these two the other way round" in refused
    run("model", "translate", "m", stdin=Path("source").read_bytes()[:300])


def test_words_are_not_shared(run):
    both = ("--subwords-from", "both")
    done = train(run, "m", *RNNSEARCH, *both, exit_code=2)
    assert "--subwords-from says what subwords are learnt from: give --subwords" in done.stderr
    other = (*TRANSFORMER, "--subwords", 0)
    train(run, "m", *other, *both, exit_code=2)
    train(run, "m", *other, "--updates", 1)


def test_a_sentence_of_too_many_subwords_is_left_out(run, tmp_path):
    for name in ("source", "target"):
        with (tmp_path / name).open("a") as text:
            text.write("nine " + "9" * 54 + "\n" + "nine " + "9" * 55 + "\n")
    trained = train(run, "m", *TRANSFORMER, "--updates", 1, "--max-length", 6).stderr
    assert "(1 were empty or too long)" in trained


def test_each_side_may_have_subwords_of_its_own(run):
    train(run, "m", *TRANSFORMER, "--subwords-from", "each", "--updates", 1)
    model = SentenceModel(Path("m"))
    assert b"W" not in model.source.shortlist
    assert b"W" in model.target.shortlist


def test_the_recipe_is_the_default_of_a_transformer(run):
    texts = ("--subwords", 300, *SMALL, "--architecture", "transformer")
    done = train(run, "m", *texts, "--updates", 2, "--label-smoothing", 0.3)
    config = json.loads(Path("m/config.json").read_text())["training"]["settings"]
    names = [
        "batch_size",
        "warmup",
        "dropout",
        "cooldown",
        "annealing",
        "label_smoothing",
        "patience",
    ]
    assert [config[name] for name in names] == [128, 600, 0.3, 0.7, 1.0, 0.3, 0]
    assert config["learning_rate"] == 0.5 / 24
    assert "300 subwords from both" in done.stderr
    warm = ("--cooldown", 0, "--updates", 2)
    train(run, "n", *SMALL, "--architecture", "transformer", "--subwords", 0, *warm)
    assert not Path("n/source.pieces").exists()
    settings = json.loads(Path("n/config.json").read_text())["training"]["settings"]
    names = "cooldown", "annealing", "patience", "learning_rate"
    assert [settings[name] for name in names] == [0.0, None, 8, 0.5 / 24]
    described = run("describe", "m").stdout
    assert "source subwords        300" in described
    assert "nats per subword" in described


@pytest.mark.parametrize(
    ("options", "preset"),
    [
        (["--architecture", "transformer"], TRANSFORMER_PRESETS["small"]),
        ([], RNNSEARCH_PRESETS["paper"]),
    ],
)
def test_the_sizes_on_a_gpu(options, preset):
    arguments = ["source", "target", "m", *options]
    with train_command.make_context("train-sentences", arguments) as context:
        given = SentenceOptions.from_options(dict(context.params))
        assert given.settings(torch.device("cuda")).sizes == preset


def test_a_run_without_a_budget_may_get_one(run):
    """And with it a cooldown, beside which there is no annealing."""
    without = ("--patience", 1, "--evaluate-every", 1, "--learning-rate", 9)
    assert "1 evaluations" in train(run, "m", *TRANSFORMER, *without).stderr
    resumed = train(run, "m", *TRANSFORMER, *without[2:], "--updates", 50, "--resume")
    assert "50 updates done" in resumed.stderr


def test_rnnsearch_of_subwords(run, tmp_path):
    train(run, "m", *RNNSEARCH, *QUICK, "--updates", 2, "--label-smoothing", 0.1)
    model = SentenceModel(tmp_path / "m")
    assert isinstance(model.target, PieceVocabulary)
    assert model.escaped
    pair = ([b"one", b"tw\xc3\xb6"], [b"TWO&apos;", b"ONE&apos;", b"new"])
    (of_words,) = model.token_log_probs([pair])
    assert len(of_words) == 4
    (of_pieces,) = model.word_log_probs([model.ids(*pair)])
    assert of_words.sum() == pytest.approx(of_pieces.sum())
    assert of_words[-1] == of_pieces[-1]
    refused = run("model", "translate", "m", "--alignment-out", "a", exit_code=2, stdin=b"one\n")
    assert "is for RNNsearch of whole words: found m" in refused.stderr


def test_the_damage_of_pieces_is_found(run, tmp_path):
    train(run, "m", *TRANSFORMER, "--subwords-from", "each", "--updates", 2)
    source, target = (tmp_path / "m" / f"{side}.pieces" for side in ("source", "target"))
    kept = source.read_bytes()
    source.write_bytes(target.read_bytes())
    assert "expected the pieces of source.vocab, found others" in (
        run("model", "translate", "m", stdin=b"one\n", exit_code=1).stderr
    )
    source.write_bytes(kept[:100])
    assert "expected a model of sentencepiece" in (run("describe", "m", exit_code=1).stderr)


def test_guided_by_links(run):
    """The log shows what is learnt of them; a run goes on with the same links alone."""
    Path("links").write_text("0-0\n" * 400)
    log = train(run, "m", *TRANSFORMER, "--alignment", "links", "--updates", 2).stderr
    assert ", alignments " in log
    refused = train(run, "m", *TRANSFORMER, "--updates", 4, "--resume", exit_code=1).stderr
    assert "no word alignment, found word alignment as it was then" in refused


def test_a_training_that_ends_in_its_warm_up_says_so(run):
    warned = train(run, "m", *TRANSFORMER, "--updates", 2).stderr
    assert "2 updates end within the warm-up of 600" in warned.splitlines()[1]
    warned = train(run, "e", *TRANSFORMER, "--epochs", 0.1).stderr
    assert "updates were within the warm-up of 600" in warned.splitlines()[-2]
    assert "has learnt too little: it has seen" in warned.splitlines()[-1]
    assert "warm-up" not in train(run, "n", *TRANSFORMER, "--updates", 2, "--warmup", 2).stderr


def test_the_lines_before_one_that_is_too_long_are_translated(run):
    train(run, "m", *TRANSFORMER, "--updates", 2)
    text = b"one\ntwo\n" + b"three " * 1001 + b"\n"
    done = run("model", "translate", "m", stdin=text, exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert "standard input at line 3: expected 1000 words or subwords at most" in done.stderr


def test_a_run_whose_best_model_is_lost_does_not_go_on(run, tmp_path):
    train(run, "m", *TRANSFORMER, "--updates", 2)
    shutil.copytree("m", "whole")
    for name, message in (
        ("model.safetensors", "m: not a model directory, model.safetensors is missing (--resume"),
        ("source.pieces", "m/source.pieces: expected sentencepiece's model, found no such file"),
    ):
        (tmp_path / "m" / name).unlink()
        lost = train(run, "m", *TRANSFORMER, "--updates", 2, "--resume", exit_code=1).stderr
        assert message in lost
        shutil.copyfile(tmp_path / "whole" / name, tmp_path / "m" / name)


def test_only_a_checkpoint(run, tmp_path):
    begun = train(run, "m", *TRANSFORMER, "--updates", 2, "--resume").stderr
    assert "m: nothing to resume, training begins" in begun
    (tmp_path / "m" / "config.json").unlink()
    refused = run("model", "translate", "m", stdin=b"one\n", exit_code=1).stderr
    assert "m: not a model directory, config.json is missing" in refused
    (tmp_path / "m" / "model.safetensors").unlink()
    refused = run("model", "translate", "m", stdin=b"one\n", exit_code=1).stderr
    assert "m: no model yet, only the checkpoint of a training" in refused


def test_what_does_not_go_together(run):
    for options, message in (
        (("--sizes", "hidden=5"), "hidden"),
        (("--shortlist", 25), "--shortlist is for whole words: give --subwords 0"),
        (("--sizes", "units=25 heads=2"), "units: expected a multiple of 2 x 2 heads"),
        (("--subwords", 20), "--subwords 20: expected 0, or 300 at least"),
    ):
        assert message in train(run, "m", *TRANSFORMER, *options, exit_code=2).stderr
    too_many = train(run, "m", *TRANSFORMER, "--subwords", 9000, exit_code=1).stderr
    assert "source, target: expected a text with enough words for --subwords 9000" in too_many
    assert "<= 462" in too_many


def test_a_text_that_cannot_be_read_is_named(run):
    """By the reader's error, not by that of sentencepiece, which learns from the text."""
    Path("nul").write_bytes(Path("source").read_bytes() + b"a\0b\n")
    words = "model", "train-sentences", "nul", "target", "m", *TRANSFORMER
    refused = run(*words, "--updates", 2, exit_code=1).stderr
    assert refused.splitlines()[-1].startswith("Error: nul at line ")
    assert refused.count("found a NUL byte") == 1
    assert not Path("m").exists()


def test_scores_of_too_many_subwords_are_refused(run):
    train(run, "m", *TRANSFORMER, "--updates", 2)
    text = b"one\tone\none\t" + b"\xf3\xa0\x80\x80" * 300 + b"\n"
    refused = run("model", "score", "m", stdin=text, exit_code=1).stderr
    assert "standard input at line 2: expected 1000 words or subwords at most, found" in refused
