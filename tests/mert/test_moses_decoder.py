"""The driver of real Moses: with a stand-in, and with a real one where there is one."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.factors import TABLE, system, write_model
from helpers.moses import (
    CUBE_PRUNING,
    GIVEN,
    N_BEST,
    SENTENCES,
    WALLS,
    tokens,
    write_replay,
)
from helpers.toy import TYPE, make_toy

from mert.decoders.moses import MosesDecoder
from mert.settings import MosesSettings
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import Hypothesis, format_nbest, read_nbest
from moses_feature.moses.programs import find_program
from moses_feature.moses.xml_input import Marks, parse_marked
from moses_feature.runtime.errors import MosesFeatureError, UsageError


@pytest.fixture
def real_moses() -> None:
    try:
        find_program(["moses"], None)
    except UsageError:
        pytest.skip("needs a real Moses in MOSES_HOME or on the PATH")


@pytest.fixture(params=["stand-in", "real"])
def settings(request) -> MosesSettings:
    if request.param == "stand-in":
        return MosesSettings(str(request.getfixturevalue("stand_in")))
    request.getfixturevalue("real_moses")
    return MosesSettings(options=CUBE_PRUNING)


def lists_of_moses(ini: MosesIni, sentences, size: int, path: Path, *options: str) -> list:
    """Return the n-best lists that real Moses finds."""
    moses = MosesDecoder(ini, sentences, MosesSettings(options=(*CUBE_PRUNING, *options)))
    moses.write_nbest(moses.features, size, path)
    moses.close()
    return list(read_nbest(path, moses.features, len(sentences)))


def assert_same_scores(one: list[Hypothesis], other: list[Hypothesis]) -> None:
    scores = ([hypothesis.score for hypothesis in of] for of in (one, other))
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=2e-3)


@pytest.mark.parametrize("filter_tables", [False, True])
def test_moses_and_the_embedded_decoder_agree(toy, embedded, settings, tmp_path, filter_tables):
    """Features, and n-best lists of sentences with unknown words and without any words."""
    settings = MosesSettings(settings.binary, 1, settings.options, 60.0, filter_tables)
    decoder = MosesDecoder(toy.ini, tokens(SENTENCES), settings)
    try:
        by_name = {f.name: f for f in decoder.features.functions}
        assert by_name == {f.name: f for f in embedded.features.functions}
        decoder.write_nbest(decoder.features, N_BEST, tmp_path / "n.gz")
    finally:
        decoder.close()
    lists = list(read_nbest(tmp_path / "n.gz", embedded.features, len(SENTENCES)))
    for number, hypotheses in enumerate(lists):
        mine = embedded.translate(number, N_BEST)
        assert len(hypotheses) == len(mine)
        np.testing.assert_allclose(
            [h.score for h in hypotheses], [h.score for h in mine], rtol=1e-5, atol=1e-4
        )
        assert hypotheses[0].words == mine[0].words
        np.testing.assert_allclose(hypotheses[0].features, mine[0].features, rtol=1e-4, atol=1e-4)


SYSTEMS = [
    {"types": ("mslr-bidirectional-fe-collapseff", "monotonicity-forward-f"), "limit": -1},
    {"types": ("leftright-backward-fe",), "limit": 0},
    {"tables": 2, "models": 2, "limit": 2},
    {"types": (), "models": 0},
    {"operations": True, "limit": -1},
]
NO_BEAM = "-beam-threshold", "0"
ODD = ["a|b c", "|a b", "a || b", "<x> a &amp;", "x y", "d", "c\u00a0d a"]


@pytest.mark.usefixtures("real_moses")
@pytest.mark.parametrize("system", SYSTEMS)
def test_all_kinds_of_systems_against_real_moses(tmp_path, system):
    """And odd tokens; phrases without a target; names and values of features."""
    toy = make_toy(tmp_path / "toy", options=2, **system)
    with (toy.folder / "table0").open("a") as table:
        table.write("d |||  ||| 0.9 0.9 ||| ||| 1 1 1\n")
    sentences = tokens(SENTENCES + ODD)
    embedded = EmbeddedDecoder(System.of_ini(toy.ini), sentences, SearchLimits(5000, 5000))
    lists = lists_of_moses(toy.ini, sentences, N_BEST, tmp_path / "n.gz")
    for number, hypotheses in enumerate(lists):
        mine = embedded.translate(number, N_BEST)
        assert_same_scores(mine, hypotheses)
        assert mine[0].words == hypotheses[0].words
        np.testing.assert_allclose(mine[0].features, hypotheses[0].features, rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("real_moses")
@pytest.mark.parametrize("policy", ["exclusive", "inclusive", "constraint", "ignore"])
def test_marked_input_against_real_moses(tmp_path, policy):
    toy = make_toy(tmp_path / "toy", options=2, types=(TYPE,))
    marked = [parse_marked(line.encode()) for line in (*GIVEN, *WALLS)]
    of_lines = EmbeddedDecoder(
        System.of_ini(toy.ini),
        [sentence.words for sentence in marked],
        SearchLimits(5000, 5000),
        marks=Marks(tuple(marked), policy),
    )
    given = toy.ini, tokens([*GIVEN, *WALLS]), N_BEST, tmp_path / "n.gz"
    lists = lists_of_moses(*given, *NO_BEAM, "-xml-input", policy)
    for number, hypotheses in enumerate(lists):
        assert_same_scores(of_lines.translate(number, N_BEST), hypotheses)


@pytest.mark.usefixtures("real_moses")
def test_target_factors_against_real_moses(tmp_path):
    """Moses lists translations with the same words and other factors; here the best one counts."""
    write_model(tmp_path / "lm1", [b"x x y", b"x y", b"x x", b"y x x"])
    sentences = tokens(["a b c", "c b a", "a a unknown b", "c", "UNK a"])
    embedded = EmbeddedDecoder(system(tmp_path, TABLE, 0.3, 0.7), sentences)
    ini = MosesIni.read(tmp_path / "ini")
    lists = lists_of_moses(ini, sentences, 200, tmp_path / "n.gz", *NO_BEAM)
    for number, hypotheses in enumerate(lists):
        best: dict[tuple[bytes, ...], float] = {}
        for found in hypotheses:
            best.setdefault(found.words, found.score)
        for mine in embedded.translate(number, 10):
            assert best[mine.words] == pytest.approx(mine.score, abs=1e-3)


def test_what_moses_is_told(toy, stand_in, tmp_path):
    settings = MosesSettings(str(stand_in), 3, ("-s", "7"))
    decoder = MosesDecoder(toy.ini, tokens(["a b c"]), settings)
    features = decoder.features.with_weights(np.arange(len(decoder.features.names)) / 7)
    decoder.write_nbest(features, 2, tmp_path / "n.gz")
    scratch = decoder._scratch
    decoder.close()
    assert not scratch.exists()
    assert "Defined parameters" in (tmp_path / "n.moses.log").read_text()
    call = json.loads((stand_in.parent / "calls.log").read_text().splitlines()[-1])
    assert call[:4] == ["-config", str(scratch / "moses.ini"), "-s", "7"]
    weights = call[call.index("-weight-overwrite") + 1]
    assert "LM0= 1 " in weights
    assert "UnknownWordPenalty0= 1 " in weights
    assert "TM0= 1.42857143 1.57142857" in weights
    assert call[call.index("-threads") + 1] == "3"
    assert gzip.decompress((tmp_path / "n.gz").read_bytes()).count(b"\n") == 2


def test_the_filtered_tables_hold_what_the_input_can_use(toy, stand_in):
    (toy.folder / "reordering0").rename(toy.folder / "reordering0.txt")
    shutil.copy(toy.folder / "reordering0.txt", toy.folder / "reordering0")
    decoder = MosesDecoder(toy.ini, tokens(["a b"]), MosesSettings(str(stand_in), filter=True))
    table = gzip.decompress((decoder._scratch / "TM0.gz").read_bytes()).decode()
    original = (toy.folder / "table0").read_text().splitlines()
    expected = [line for line in original if line.split(" ||| ")[0] in ("a", "b", "a b")]
    assert table.splitlines() == expected
    assert (decoder._scratch / "LR0.gz").exists()
    decoder.close()


def test_components_that_are_not_tuneable(toy, stand_in):
    weights = json.loads((stand_in.parent / "replay.json").read_text())["weights"]
    lines = [
        "TM0= 0.1 UNTUNEABLECOMPONENT" if line.startswith("TM0=") else line
        for line in weights.splitlines()
    ]
    write_replay(stand_in, weights="\n".join(lines))
    decoder = MosesDecoder(toy.ini, tokens(["a"]), MosesSettings(str(stand_in)))
    assert decoder.features.names[-1] == "TM0_0"
    in_ini = toy.ini.weights["TM0"].values
    assert decoder.features.by_name()["TM0"] == in_ini
    assert FeatureSet.of_ini(toy.ini).weights.sum() == decoder.features.weights.sum()
    decoder.close()


def test_what_goes_wrong_with_moses(toy, stand_in, tmp_path, monkeypatch):
    def decoder(**settings: object) -> MosesDecoder:
        return MosesDecoder(toy.ini, tokens(["a b c"]), MosesSettings(str(stand_in), **settings))

    write_replay(stand_in, crash=True)
    with pytest.raises(MosesFeatureError, match=r"(?s)exit code 3.*Exception: no such model"):
        decoder().write_nbest(FeatureSet.of_ini(toy.ini), 2, tmp_path / "n.gz")
    assert not (tmp_path / "n.gz").exists()
    write_replay(stand_in, crash=False, sleep=5)
    with pytest.raises(MosesFeatureError, match=r"was ended after 0\.5 s"):
        decoder(seconds=0.5).write_nbest(FeatureSet.of_ini(toy.ini), 2, tmp_path / "n.gz")
    write_replay(stand_in, weights="nothing")
    with pytest.raises(MosesFeatureError, match=r"expected lines like Name= 0\.2, found 'nothing"):
        decoder()
    write_replay(stand_in, weights="TM0= 1 2 3")
    with pytest.raises(MosesFeatureError, match="expected 3 weights of TM0 as Moses says, found 2"):
        decoder()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MOSES_HOME", str(tmp_path / "home"))
    with pytest.raises(UsageError, match=r"looked for .*/home/bin/moses, .*moses on the PATH"):
        find_program(["moses"], None)
    with pytest.raises(UsageError, match="looked for /none"):
        find_program(["moses"], "/none")
    (tmp_path / "home" / "bin").mkdir(parents=True)
    shutil.copy(stand_in, tmp_path / "home" / "bin" / "moses")
    assert find_program(["moses"], None) == tmp_path / "home" / "bin" / "moses"
    assert find_program(["moses"], str(tmp_path / "home")) == tmp_path / "home" / "bin" / "moses"


@pytest.mark.slow
def test_sigterm_ends_moses_and_removes_its_tables(toy, stand_in, tmp_path):
    write_replay(stand_in, sleep=600)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "text").write_text("a b c\nd\n")
    words = ["--dev", "text", "--dev-reference", "text", "--work-dir", "w", "--decoder", "moses"]
    program = "from moses_feature.cli.common.start import tune; tune()"
    tuner = subprocess.Popen(
        [sys.executable, "-c", program, toy.ini.path, *words, "--moses", stand_in],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    calls = stand_in.parent / "calls.log"
    while not calls.exists() or "-n-best-list" not in calls.read_text():
        assert time.monotonic() < deadline
        assert tuner.poll() is None, tuner.stderr.read()
        time.sleep(0.01)
    children = Path(f"/proc/{tuner.pid}/task/{tuner.pid}/children").read_text().split()
    moses = next(n for n in children if str(stand_in).encode() in cmdline(n))
    assert any((tmp_path / "temporary").iterdir())
    tuner.send_signal(signal.SIGTERM)
    tuner.communicate(timeout=120)
    assert tuner.returncode == 128 + signal.SIGTERM
    while str(stand_in).encode() in cmdline(moses):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not any((tmp_path / "temporary").iterdir())


def cmdline(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def test_names_that_only_moses_accepts(toy, stand_in, tmp_path):
    """`RNN_TM` and `TM-100%` break mert-moses.pl; here they are tuned like any other."""
    path = toy.folder / "moses.ini"
    path.write_text(path.read_text().replace("TM0", "TM-100%").replace("LR0", "R_x"))
    replay = (stand_in.parent / "replay.json").read_text()
    (stand_in.parent / "replay.json").write_text(
        replay.replace("TM0", "TM-100%").replace("LR0", "R_x")
    )
    decoder = MosesDecoder(toy.ini, tokens(["a b c"]), MosesSettings(str(stand_in)))
    decoder.write_nbest(decoder.features, 3, tmp_path / "n.gz")
    decoder.close()
    (hypotheses,) = read_nbest(tmp_path / "n.gz", decoder.features, 1)
    again = format_nbest(0, hypotheses, decoder.features)
    assert again == gzip.decompress((tmp_path / "n.gz").read_bytes())
    system = System.of_ini(toy.ini)
    embedded = EmbeddedDecoder(system, tokens(["a b c"]), SearchLimits(5000, 5000))
    assert embedded.translate(0)[0].words == hypotheses[0].words
