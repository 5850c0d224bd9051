"""`augment-phrase-table` with the text of the table: its network is refined for BLEU.

A part of the text is held out. A system is built of the rest, and tuned on sentences of the part. A
network is trained on the whole table, so that it knows all pairs that it will score, each from one
occurrence, however frequent it is. It is refined on the system's n-best lists of the part, of which
neither the system's table nor its language model has seen anything. Then it scores the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import command_line
from moses_feature.cli.common.device import DeviceOptions
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.stages import Stages
from moses_feature.cli.models.training_options import TrainingOptions
from moses_feature.moses.system_directory import INI
from moses_feature.moses.words import WordOptions
from moses_feature.phrases.settings import RefineSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import Json, locked_directory
from moses_feature.training.settings import RunSettings

if TYPE_CHECKING:
    from mert.tuning.corpus import Corpus
    from moses_feature.build.built_text import BuiltText

HELD_OUT, FEWEST_HELD_OUT, MOST_HELD_OUT = 0.2, 20, 10_000
"""The share of the sentence pairs that are held out, and the least and the most of them."""
PAIRS, FOUND = 2_000, 0.5
"""Phrase pairs of the text that are looked for in the table, and the share that must be there."""
TUNED_ON, ITERATIONS = 1_500, 6
"""The held-out sentences that weights are tuned on, and how often they are translated at most."""
TRAINING = 0.6
"""The share of the time left for networks in which one is trained; then it is refined."""
REFINING = RefineSettings(learning_rate=1e-3, epochs=4, cooldown=0.5)
"""How a network is refined: it gained more, in the same time, than at a rate of 0.0003."""


@dataclass(frozen=True)
class TextOptions:
    """The text of a table: a system of `system build`, or the files of its text."""

    system: str | None
    source: str | None
    target: str | None
    alignment: str | None
    documents: str | None

    def given(self) -> bool:
        """Return whether there is a text; check that its files belong together.

        Raises:
            UsageError: they do not.
        """
        if self.system and (self.source or self.target or self.alignment):
            raise UsageError("--system knows its text: not with --source, --target, --alignment")
        if bool(self.source) != bool(self.target):
            raise UsageError("--source and --target go together")
        others = self.alignment or self.documents
        if others and not (self.system or self.source):
            raise UsageError("--alignment and --documents go with --source and --target")
        return bool(self.system or self.source)


def _text_of(options: TextOptions) -> BuiltText:
    """Return the text that the options name."""
    from moses_feature.build.built_text import BuiltText, text_of_system
    from moses_feature.build.held_out import AlignedText

    if options.system:
        return text_of_system(Path(options.system), options.documents)
    source, target = options.source or "", options.target or ""
    return BuiltText(AlignedText(source, target, options.alignment, options.documents))


def train_refined(
    table: str,
    directory: Path,
    options: TextOptions,
    training: TrainingOptions,
    words: TableWords,
    device: DeviceOptions,
    resume: bool,
    start: Path | None = None,
) -> Json:
    """Train a network for the table of a text, and refine it; return the story of the run.

    Args:
        table: the table.
        directory: the model directory; beside it, a directory `*.work` has all that is made on
            the way.
        options: the text.
        training: how to train; its minutes are those of all stages together.
        words: how the tokens of the table become words.
        device: where to train.
        resume: whether to continue a run that is there.
        start: the network to refine; None to train one.
    """
    _check(training, words)
    text = _text_of(options)
    work = directory.with_suffix(".work")
    with locked_directory(work, "training"):
        return _Run(table, directory, work, text, training, device, resume, start).run()


def _check(training: TrainingOptions, words: TableWords) -> None:
    """Refuse what lists of an embedded decoder cannot refine."""
    given = {
        "--reverse": training.reverse,
        "--hierarchical": words.hierarchical,
        "--source-factor": words.source_factor is not None,
        "--target-factor": words.target_factor is not None,
    }
    for option in (name for name, value in given.items() if value):
        raise UsageError(f"{option}: not for a network that is refined on the table's text")


class _Run:
    """One run and its directory."""

    def __init__(
        self,
        table: str,
        directory: Path,
        work: Path,
        text: BuiltText,
        training: TrainingOptions,
        device: DeviceOptions,
        resume: bool,
        start: Path | None,
    ) -> None:
        from moses_feature.build.held_out import Part

        self._table = table
        self._model = directory
        self._work = work
        self._text = text
        self._training = training
        self._device = device
        self._resume = resume
        self._start = start or work / "model"
        self._rest, self._part = (Part.within(work, name) for name in ("rest", "held-out"))
        self._tuned, self._lists = work / "tuned", work / "lists.gz"

    def run(self) -> Json:
        """Do all stages that are not done."""
        from moses_feature.moses.lines import digest_of

        files = {name: path for name, path in vars(self._text.files).items() if path}
        of_run = self._training.run
        run = {f.name: getattr(of_run, f.name) for f in fields(RunSettings)}
        budgets = {"updates", "epochs", "minutes"}
        options = {name: value for name, value in vars(self._training).items() if name != "run"}
        identity = {
            "texts": {name: digest_of(path) for name, path in files.items()},
            "table": digest_of(self._table),
            "building": asdict(self._text.settings),
            "training": {name: value for name, value in run.items() if name not in budgets},
            "network": {
                **options,
                "size": asdict(self._training.size),
                "self_normalisation": of_run.self_normalisation,
                "sample": of_run.sample,
                "start": str(self._start),
            },
        }
        stages = Stages(self._work, identity, self._resume)
        stages.run("holding a part of the text out", self._hold_out)
        stages.run("building a system of the rest", self._build)
        stages.run("tuning it on the part", self._tune)
        stages.run("translating the part into lists", self._translate)
        if self._start == self._work / "model":
            stages.run("training a network", lambda: self._train(self._left(stages, TRAINING)))
        stages.run("refining it", lambda: self._refine(self._left(stages)))
        click.echo(f"{self._work} has what was made on the way; it may be removed", err=True)
        return {"text": {**files}, **stages.record}

    def _left(self, stages: Stages, share: float = 1.0) -> float | None:
        """Return a share of the minutes that are left; None without a budget in time."""
        minutes, spent = self._training.run.minutes, stages.seconds() / 60
        if minutes is None:
            return None
        if spent >= minutes:
            raise UsageError(
                f"--minutes {minutes:g}: {spent:.3g} are spent, and the network is not ready; give "
                "more with --resume"
            )
        return share * (minutes - spent)

    def _hold_out(self) -> None:
        from moses_feature.build.held_out import hold_out

        of, seed = (self._text.files, self._rest, self._part), self._training.run.seed
        longest = self._text.settings.longest
        hold_out(*of, longest=longest, share=HELD_OUT, most=MOST_HELD_OUT, seed=seed)
        if (sentences := len(self._corpus())) < FEWEST_HELD_OUT:
            raise MosesFeatureError(
                f"{self._text.files.source}: expected {round(FEWEST_HELD_OUT / HELD_OUT)} sentence "
                f"pairs at least, of which a fifth is held out, found a fifth with {sentences}"
            )

    def _build(self) -> None:
        from moses_feature.build.system import BuildData, build

        text, rest = self._text, self._rest
        alignment = str(rest.alignment) if text.files.alignment else None
        files = str(rest.source), str(rest.target), alignment, text.model, text.model_texts
        data = BuildData(*files)
        if text.model:
            message = f"{text.model} is used as it is: has it seen the text, too?"
            click.echo(message, err=True)
        with Progress(has_end=True) as progress:
            build(data, text.settings, self._work / "system", command_line(), progress.show)
        self._check_table()

    def _check_table(self) -> None:
        """Check that the table is one of this text.

        Raises:
            MosesFeatureError: few of the text's phrase pairs are in it.
        """
        wanted = set(_pairs(str(self._work / "system" / "phrase-table.gz"), PAIRS))
        found = len(wanted.intersection(_pairs(self._table)))
        if found < FOUND * len(wanted):
            raise MosesFeatureError(
                f"{self._table}: expected a table of {self._text.files.source} and "
                f"{self._text.files.target}, found {found:,} of {len(wanted):,} phrase pairs of "
                "theirs: are they tokenised as the table is?"
            )

    def _corpus(self) -> Corpus:
        from mert.tuning.corpus import Corpus

        return Corpus.read(self._part.source, [self._part.target])

    def _tune(self) -> None:
        from mert.decoders.choice import make_decoder
        from mert.settings import DecoderSettings, TuningSettings
        from mert.tuning.corpus import check_chain
        from mert.tuning.state import decoder_identity, identity_of
        from mert.tuning.tune_rescored import tune_system
        from moses_feature.moses.ini import MosesIni

        corpus = self._corpus()
        some = corpus.sentences[:TUNED_ON], corpus.references[:TUNED_ON]
        corpus = replace(corpus, sentences=some[0], references=some[1])
        ini, choice = MosesIni.read(self._work / "system" / INI), DecoderSettings()
        check_chain(ini, corpus, choice)
        identity = {**identity_of(ini, corpus), "decoder": decoder_identity(choice)}
        settings = TuningSettings(max_iterations=ITERATIONS, seed=self._training.run.seed)
        decoder = make_decoder(choice, ini, corpus.sentences)
        try:
            with _decoding(len(corpus)) as report:
                tune_system(
                    ini,
                    corpus,
                    decoder,
                    self._tuned,
                    settings,
                    identity=identity,
                    command=command_line(),
                    report=report,
                )
        finally:
            decoder.close()

    def _translate(self) -> None:
        from mert.decoders.choice import make_decoder
        from mert.settings import DecoderSettings, TuningSettings
        from moses_feature.moses.ini import MosesIni

        corpus, ini = self._corpus(), MosesIni.read(self._tuned / INI)
        decoder = make_decoder(DecoderSettings(segmentation=True), ini, corpus.sentences)
        size = TuningSettings.list_size
        try:
            with _decoding(len(corpus)) as report:
                decoder.write_nbest(
                    decoder.features, size, self._lists, lambda done: report("decoding", done)
                )
        finally:
            decoder.close()

    def _train(self, minutes: float | None) -> None:
        from moses_feature.cli.models.train import train_model
        from moses_feature.training.trainer import holds_model

        model = self._work / "model"
        run = replace(self._training.run, minutes=minutes)
        training = replace(self._training, run=run)
        on = self._device.prepare()
        train_model((self._table,), model, training, WordOptions(), on, holds_model(model))

    def _refine(self, minutes: float | None) -> None:
        from moses_feature.cli.models.training_run import train_and_show
        from moses_feature.moses.features import FeatureSet
        from moses_feature.moses.ini import MosesIni
        from moses_feature.phrases.refinement.lists import RefineData
        from moses_feature.phrases.refinement.refine import refine
        from moses_feature.training.trainer import holds_model

        part, run = self._part, self._training.run
        features = FeatureSet.of_ini(MosesIni.read(self._tuned / INI))
        texts = str(part.source), [str(part.target)], str(self._lists)
        documents = str(part.documents) if self._text.files.documents else None
        data = RefineData(self._start, *texts, features, TableWords(), None, documents)
        settings = replace(REFINING, minutes=minutes, seed=run.seed, dtype=run.dtype)
        settings = replace(settings, dropout=run.dropout)
        of = data, settings, self._model, self._device.prepare()
        train_and_show(refine, *of, holds_model(self._model), "sentences")


def _pairs(table: str, most: int | None = None) -> Iterator[tuple[bytes, ...]]:
    """Yield the phrase pairs of a table."""
    from moses_feature.moses.lines import LineReader
    from moses_feature.moses.phrase_table import SEPARATOR

    with LineReader(table) as reader:
        for line in islice(reader, most):
            yield tuple(field.strip() for field in line.split(SEPARATOR, 2)[:2])


@contextmanager
def _decoding(sentences: int) -> Iterator[Callable[[str, int], None]]:
    """Show the progress of decoding."""
    from moses_feature.cli.tuning.options import DecodingProgress

    with Progress(has_end=True) as bar:
        yield DecodingProgress(bar, {"decoding": sentences})
