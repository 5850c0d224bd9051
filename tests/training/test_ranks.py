"""Training by several processes: the same updates as by one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.training import write_pairs

from moses_feature.training.ranks import Ranks

pytestmark = pytest.mark.slow

OPTIONS = "--batch-size 17 --evaluate-every 10 --seed 1 --cooldown 0"
SIZES = "--sizes", "hidden=11 embedding=5 maxout=7 rank=3"


def train(folder: Path, *arguments: str, processes: int) -> subprocess.CompletedProcess[str]:
    """Train `pairs.tsv` by one process or by several."""
    program = ["-m", "moses_feature", "model", "train"]
    if processes > 1:
        program = [
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
            *program,
        ]
    return subprocess.run(
        [sys.executable, *program, "pairs.tsv", *arguments, *SIZES, *OPTIONS.split()],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def history(directory: Path) -> np.ndarray:
    """Return training and held-out loss of each evaluation up to the best one."""
    content = json.loads((directory / "config.json").read_text())
    rows = content["training"]["history"]
    return np.array([[row["training_loss"], row["held_out_loss"]] for row in rows])


@pytest.mark.slow
def test_two_processes_train_as_one_does_and_one_goes_on(tmp_path):
    """Of 17 pairs an update, 9 and 8; then of two processes only one is left."""
    write_pairs(tmp_path / "pairs.tsv", 400)
    whole = train(tmp_path, "one", "--updates", "60", processes=1)
    assert whole.returncode == 0, whole.stderr
    begun = train(tmp_path, "two", "--updates", "30", processes=2)
    assert begun.returncode == 0, begun.stderr
    assert begun.stderr.count("unique phrase pairs") == 1
    assert history(tmp_path / "two").shape == (3, 2)
    ended = train(tmp_path, "two", "--updates", "60", "--resume", processes=1)
    assert ended.returncode == 0, ended.stderr
    assert "resumed at update 30" in ended.stderr
    np.testing.assert_allclose(history(tmp_path / "two"), history(tmp_path / "one"), rtol=1e-4)
    assert history(tmp_path / "two")[-1, 1] < history(tmp_path / "two")[0, 1]

    again = train(tmp_path, "two", "--updates", "70", "--resume", processes=2)
    assert again.returncode == 0, again.stderr
    assert "resumed at update 60" in again.stderr
    training = json.loads((tmp_path / "two" / "config.json").read_text())["training"]
    assert training["history"][-1]["update"] == 70
    assert training["processes"] == 2


def test_augmenting_is_not_for_torchrun(run, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = run("augment-phrase-table", "in", "out", "--model", "m", exit_code=2)
    assert "torchrun is for training" in result.stderr


@pytest.mark.slow
def test_what_is_wrong_is_said_once(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tA\nb\n")
    result = train(tmp_path, "model", processes=2)
    assert result.returncode == 1
    assert result.stderr.count("Error: pairs.tsv at line 2") == 1
    assert len(re.findall(r"^Error: ", result.stderr, re.MULTILINE)) == 1
    assert not (tmp_path / "model").exists()


def test_every_row_of_a_batch_is_the_share_of_one_process():
    rows = np.arange(17)
    shares = [Ranks(index, 3).share(rows) for index in range(3)]
    assert sorted(np.concatenate([mine for mine, _ in shares])) == list(rows)
    assert [weight for _, weight in shares] == [1.0, 1.0, 1.0]
    few = [Ranks(index, 3).share(rows[:2]) for index in range(3)]
    assert [len(mine) for mine, _ in few] == [1, 1, 1]
    assert [weight for _, weight in few] == [1.0, 1.0, 0.0]
