"""A report: what one pass over a table finds, maps against plain neighbours, the page itself."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.browser import BROWSER, driven
from helpers.models import SIZES, random_model

from moses_feature.moses.words import WordOptions
from moses_feature.networks.pair_network import network_of
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.report.facts import BIN, OUTLIERS, summarise
from moses_feature.report.maps import FEWEST, NEIGHBOURS, make_map
from moses_feature.tables.score_lines import network_column, phrases_of_table

WORDS = [b"w%03d" % n for n in range(110)] + [b"<b>&amp;", b"\xff\x1b[31m"]


def write_table(path: Path, sources: int = 240) -> None:
    generator = np.random.default_rng(1)
    lines = {}
    for number in range(sources):
        source = b" ".join(generator.choice(WORDS, 2 + number % 4).tolist())
        count = int(generator.integers(1, 99))
        for target in (b"A", b"B C", b"le </script> chien"):
            p = generator.uniform(0.01, 1)
            scores = b"0.5 0.5 %.4f 0.5" % p
            lines[source, target] = b"%b ||| %b ||| %b ||| 0-0 ||| 9 %d 9 ||| |||\n" % (
                source,
                target,
                scores,
                count,
            )
    path.write_bytes(b"".join(lines[key] for key in sorted(lines)))


def save_large_vocabulary(directory: Path, sizes=SIZES) -> None:
    """Save a model with enough source words for a map."""
    plain = random_model(sizes)
    source = Vocabulary(tuple(WORDS))
    network = network_of(sizes, len(source), len(plain.target))
    network.initialise(torch.Generator().manual_seed(1))
    training = {
        "held_out_loss": 1.5,
        "history": [
            {"update": n, "training_loss": 3 / n, "held_out_loss": 4 / n} for n in (1, 2, 3)
        ],
    }
    save_model(directory, PhraseModel(network, source, plain.target, WordOptions(), training, True))


@pytest.fixture
def table(run, tmp_path) -> Path:
    save_large_vocabulary(tmp_path / "m", SIZES)
    write_table(tmp_path / "in")
    run("augment-phrase-table", "in", "out", "--model", "m")
    return tmp_path / "out"


def test_one_pass_against_the_lines_themselves(table):
    column = network_column(table)
    summary = summarise(table, column)
    lines = [line for _, some in phrases_of_table(table, column) for line in some]
    assert summary.lines == len(lines) == summary.density.counts.total()
    assert summary.sources == len({line.source for line in lines})
    assert summary.density.examples.keys() == summary.density.counts.keys()
    for (by_table, by_network), line in summary.density.examples.items():
        for place, p in ((by_table, line.by_table), (by_network, line.by_network)):
            assert -BIN * (place + 1) <= math.log(p) <= -BIN * place
    assert [line.known for line in lines] == [b"script" not in line.target for line in lines]
    known = [line for line in lines if line.known]
    ranked = sorted(known, key=lambda line: math.log(line.by_table) - math.log(line.by_network))
    above = [line for line in ranked if line.by_network > line.by_table]
    below = [line for line in ranked[::-1] if line.by_network < line.by_table]
    assert summary.preferred_by_network == above[:OUTLIERS]
    assert summary.preferred_by_table == below[:OUTLIERS]
    long = {line.source: line.source_count for line in lines if line.source.count(b" ") >= 3}
    assert summary.phrases == sorted(long, key=lambda phrase: -long[phrase])
    assert summary.long_phrases == len(long)


@pytest.mark.parametrize("fields", [3, 4])
def test_a_table_without_counts(table, fields):
    column = network_column(table)
    whole = [line for _, some in phrases_of_table(table, column) for line in some]
    assert any(line.source_count for line in whole)
    lines = [line.split(b" ||| ")[:fields] for line in table.read_bytes().split(b"\n")[:-1]]
    table.write_bytes(b"".join(b" ||| ".join(line) + b"\n" for line in lines))
    found = [line for _, some in phrases_of_table(table, column) for line in some]
    assert [line.by_network for line in found] == [line.by_network for line in whole]
    assert not any(line.source_count for line in found)


def test_neighbours():
    vectors = np.random.default_rng(2).normal(size=(FEWEST + 4, 9)).astype(np.float32)
    names = [f"n{place}\tx" for place in range(len(vectors))]
    found = make_map(names, vectors, seed=3)
    centred = vectors - vectors.mean(axis=0)
    for place in range(0, len(vectors), 17):
        cosines = centred @ centred[place] / np.linalg.norm(centred, axis=1)
        expected = [n for n in np.argsort(-cosines) if n != place][:NEIGHBOURS]
        assert found.neighbours[place].tolist() == expected
    assert found.places.shape == (len(vectors), 2)
    np.testing.assert_array_equal(make_map(names, vectors, seed=3).places, found.places)


def test_the_page(table, run):
    result = run("table", "report", "out", "m", "--output", "r.html")
    assert result.stdout == "r.html: open it in a browser\n"
    page = (table.parent / "r.html").read_text()
    titles = re.findall("<h2>(.*?)</h2>", page)
    expected = ["What was done", "Training", "Where table and network agree"]
    assert [title.split(" (")[0] for title in titles[:3]] == expected
    assert "A map of the words" in page
    assert "&lt;b&gt;&amp; " in page  # in a cell of a table
    assert "\x1b" not in page
    assert page.count("</script>") == page.count("<script")
    without_scripts = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search('(src|href)=(?!"#)', without_scripts)


def test_few_points_and_no_package(run, tmp_path, model_directory, monkeypatch):
    write_table(tmp_path / "in", 8)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    run("table", "report", "out", model_directory)
    page = (tmp_path / "report.html").read_text()
    assert page.count("No map: it takes 91 points at least") == 2
    monkeypatch.setattr("moses_feature.report.report.can_make_maps", lambda: False)
    run("table", "report", "out", model_directory)
    assert "pip install" in (tmp_path / "report.html").read_text()


def test_errors(run, tmp_path, model_directory):
    write_table(tmp_path / "in", 8)
    refused = run("table", "report", "in", model_directory, exit_code=1)
    assert "is in an augmented table?" in refused.stderr
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    save_model(tmp_path / "other", random_model(seed=2))
    refused = run("table", "report", "out", "other", exit_code=1)
    assert "out.features.json: expected the model in other to have scored" in refused.stderr
    assert not (tmp_path / "report.html").exists()
    for output in ("-", "no/such.html", "out.features.json", "other/r.html", "other"):
        run("table", "report", "out", model_directory, "--output", output, exit_code=2)
    refused = run("table", "report", "none", model_directory, exit_code=1)
    assert "none: expected a table in a file, found none" in refused.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"zz ||| A ||| 0.5 0.5 1.5 0.5 0.1 1 |||\n", "line 25: expected a probability"),
        (b"zz ||| A ||| 0.5 0.5 0.5 0.5 -0.5 1 |||\n", "line 25: expected a probability"),
        (b"zz ||| A ||| 0.5 0.5 0.5 0.5 0.1 |||\n", "line 25: expected 6 scores"),
        (b"zz ||| A ||| 0.5 0.5 0.5 0.5 0.1 1 |||\n", "expected 24 lines, as out.features.json"),
    ],
)
def test_a_table_that_is_not_the_one_that_was_written(
    run, tmp_path, model_directory, line, message
):
    write_table(tmp_path / "in", 8)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    with (tmp_path / "out").open("ab") as file:
        file.write(line)
    assert message in run("table", "report", "out", model_directory, exit_code=1).stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [("clipped_scores", "x"), ("unknown_source_words", None), ("command", 7), ("settings", 1)],
)
def test_a_damaged_description(run, tmp_path, model_directory, name, value):
    write_table(tmp_path / "in", 8)
    run("augment-phrase-table", "in", "out", "--model", model_directory)
    path = tmp_path / "out.features.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    refused = run("table", "report", "out", model_directory, exit_code=1)
    assert "out.features.json: expected" in refused.stderr


def test_factors_are_those_that_were_scored(run, tmp_path, model_directory):
    """Samples and summaries see the words that the scores were made of."""
    lines = b"".join(
        b"a|%d b|1 c|2 d|3 ||| %b ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 9 9 9 ||| |||\n" % (n, target)
        for n in range(3)
        for target in (b"A|1", b"B|1", b"C|1")
    )
    (tmp_path / "in").write_bytes(lines)
    factors = "--source-factor", 0, "--target-factor", 0
    run("augment-phrase-table", "in", "out", "--model", model_directory, *factors)
    run("table", "report", "out", model_directory)
    page = (tmp_path / "report.html").read_text()
    drawn = re.findall("<tr><td>a[|]. b[|]1 c[|]2 d[|]3 [(]9 times.*?</tr>", page, re.DOTALL)
    found = {re.findall("<td>.*?</td>", row, re.DOTALL)[3] for row in drawn}
    assert len(drawn) == 6
    assert len(found) == 1  # the same words, the same samples
    sampled = run("model", "sample", model_directory, stdin=b"a b c d\n").stdout.splitlines()
    words = [line.split("\t")[1].replace("&apos;", "'") or "∅" for line in sampled]
    (cell,) = found
    assert html.unescape(cell[4:-5]).split("\n") == words


SCRIPT = """
const holder = document.querySelector('[data-map=words]');
const plot = holder.querySelector('.js-plotly-plot');
type(holder.querySelector('input'), 'W01');
await tick();
found.found = holder.querySelector('output').textContent;
found.selected = plot.data[0].selectedpoints.length;
plot.emit('plotly_click', { points: [{ pointNumber: 3 }] });
await tick();
found.clicked = holder.querySelector('output').textContent;
const before = JSON.stringify(plot.data[0].marker.color);
choose(holder.querySelector('select'), 'cluster');
await tick();
found.painted = JSON.stringify(plot.data[0].marker.color) !== before;
type(document.querySelector('input[data-filters]'), 'no such phrase');
found.rows = [...document.querySelectorAll('#frequent tbody tr')].filter((r) => !r.hidden).length;
found.ink = plot.layout.font.color;
"""
"""What a reader does, and what comes of it."""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_in_a_browser(table, run):
    run("table", "report", "out", "m", "--output", "r.html")
    found = driven(table.parent / "r.html", SCRIPT)
    assert found["found"].startswith("10 found: w01")
    assert found["selected"] == 10
    assert found["clicked"].startswith("Nearest to w003: ")
    assert found["clicked"].count("·") == NEIGHBOURS - 1
    assert found["painted"]
    assert found["rows"] == 0
    assert found["ink"] == "#ddd"  # it is dark
    assert found["requests"] == 0
