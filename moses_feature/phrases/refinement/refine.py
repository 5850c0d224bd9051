"""From a trained network and n-best lists to a network that is better at telling them apart."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import torch

from moses_feature import __version__
from moses_feature.networks.direction import FORWARD
from moses_feature.phrases.cross_fitting import FOLDS
from moses_feature.phrases.model import PhraseModel, load_model
from moses_feature.phrases.refinement.expected_bleu import ExpectedBleu
from moses_feature.phrases.refinement.lists import ListReader, PhraseLists
from moses_feature.phrases.refinement.settings import RefineData, RefineSettings
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, locked_directory
from moses_feature.training.trainer import (
    NO_CONTROL,
    RunControl,
    Trainer,
    holds_model,
    run_or_resume,
)

logger = logging.getLogger(__name__)


def refine(
    data: RefineData,
    settings: RefineSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Refine a network and keep the best one in `directory`, with the checkpoint of the run.

    Args:
        data: the network and the lists.
        settings: how.
        directory: a model directory; must not hold a model unless the run goes on.
        device: where to train.
        control: see there.

    Returns:
        The reason for stopping; `interrupted` when `control.stop` said so.

    Raises:
        UsageError: `directory` holds a model already and is not to be resumed, or the network is
            of another kind.
        FormatError: a damaged list.
        DataError: texts of different lengths, or lists of another network.
    """
    ranks = control.ranks
    ranks.from_first(lambda: _check(data, directory, control.resume))
    with ExitStack() as stack:
        lock = locked_directory(directory, "refining")
        ranks.from_first(lambda: stack.enter_context(lock))
        model = load_model(data.model)
        if model.digest != data.digest:
            raise UsageError(
                f"{data.model}: expected the network that made the column of the lists (SHA-256 "
                f"{data.digest[:12]}…), found another one ({model.digest[:12]}…)"
            )
        if model.reading != FORWARD:
            raise UsageError(
                f"{data.model}: expected a network for {FORWARD}, found {model.reading}"
            )
        lists, provenance = ranks.from_first(partial(_read, data, model, control.command))
        weight = settings.weight
        if weight is None:
            weight = float(data.features.weights[data.features.tuneable][data.column])
        objective = ExpectedBleu(model, lists, weight, settings, device)
        trainer = Trainer(objective, settings, directory, device, provenance, ranks)
        return run_or_resume(trainer, directory, control.stop, control.report, ranks)


def _check(data: RefineData, directory: Path, resume: bool) -> None:
    if STANDARD_STREAM in (data.source, *data.references, data.lists):
        raise UsageError("refining reads from files: expected a file name, found -")
    if (data.model / FOLDS).exists():
        raise UsageError(f"{data.model} has a network for each fold: name one, such as fold-1")
    if holds_model(directory) and not resume:
        raise UsageError(f"{directory} holds a model already: --resume goes on with it")


def _read(data: RefineData, model: PhraseModel, command: str) -> tuple[PhraseLists, Json]:
    """Return the lists, and what is to be known of their origin."""
    words = data.words.words(model)
    reader = ListReader(data.features, data.column, words, model.source, model.target)
    lists = reader.read(data.lists, data.source, data.references)
    several = lists.with_several()
    logger.info(
        "%s translations of %s sentences, %s of which have some of different BLEU; %s different "
        "phrase pairs",
        *(f"{n:,}" for n in (len(lists.bleu), len(lists.sentences) - 1, len(several))),
        f"{len(lists.source):,}",
    )
    provenance = {
        "objective": "expected BLEU",
        "command": command,
        "version": __version__,
        "inputs": reader.inputs,
        "refined_model": model.digest,
        "before": model.training,
    }
    return lists, provenance
