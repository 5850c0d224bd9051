"""The workflow of `augment-phrase-table` with the text of the table: a network refined for BLEU.

A part of the text is held out. A system is built of the rest, and tuned on sentences of the part. A
network is trained on the whole table, so that it knows all pairs that it will score, each from one
occurrence, however frequent it is. It is refined on the system's n-best lists of the part, of which
neither the system's table nor its language model has seen anything. Its column is judged on a fifth
of the part that is kept for this. Then it scores the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from mert.decoders.choice import make_decoder
from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus, check_chain
from mert.tuning.state import decoder_identity, identity_of
from mert.tuning.tune_rescored import tune_system
from moses_feature.building.built_text import BuiltText
from moses_feature.building.held_out import TextPart, cut_off, hold_out
from moses_feature.building.system import PHRASES, BuildData, build
from moses_feature.decoder.decoder import usual_jobs
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import LineReader, digest_of
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.moses.system_directory import INI
from moses_feature.networks.architectures import Dtype
from moses_feature.networks.files import CONFIG
from moses_feature.phrases.refinement.lists import RefineData
from moses_feature.phrases.settings import RefineSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.refining.budget import FEWEST_JUDGED, ITERATIONS, JUDGING, RefiningPlan, plan
from moses_feature.refining.judge import Verdict, judge
from moses_feature.refining.stages import Stages
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import Json, locked_directory
from moses_feature.runtime.json_files import member, read_json, record
from moses_feature.tables.add_to_ini import add_to_ini

HELD_OUT, FEWEST_HELD_OUT, MOST_HELD_OUT = 0.25, 25, 11_000
"""The share of the sentence pairs that are held out, and the least and the most of them."""
PAIRS, FOUND = 2_000, 0.5
"""Phrase pairs of the text that are looked for in the table, and the share that must be there."""
JUDGED, MOST_JUDGED = 0.2, 1_000
"""The share of the held-out sentences that the column is judged on, and the most."""
PROBED = 40
"""Sentences by which the speed of decoding is measured."""
TRAINING = 0.6
"""The share of the time left for networks in which one is trained; then it is refined."""
REFINING = RefineSettings(learning_rate=1e-3, epochs=4, cooldown=0.5)
"""How a network is refined: it gained more, in the same time, than at a rate of 0.0003."""


VERDICT = "judging its column"
"""The stage whose record has the verdict."""

Show = Callable[[str, float | None], None]
"""Called with the current step of a build, and its share that is done."""
Report = Callable[[str, int], None]
"""Called with the current task, and the number of further sentences that are done."""


@dataclass(frozen=True)
class RefiningSettings:
    """How a network is trained and refined for the table of a text.

    Attributes:
        seed: of everything random.
        dropout, dtype: of training and refining.
        minutes: of all stages together; None for no limit.
        identity: what makes the network; another one is not continued.
    """

    seed: int
    dropout: float
    dtype: Dtype
    minutes: float | None
    identity: Json


@dataclass(frozen=True)
class RefiningActions:
    """What the caller brings: training, and how progress is shown.

    Attributes:
        train: trains a network on the table, in a directory, for so many minutes.
        refine: refines a network.
        score: writes a table with the network's column: network, table, output, and a text whose
            phrases alone are needed.
        building: a context in which a build shows its progress.
        decoding: a context in which the decoding of so many sentences shows its progress.
        say: called with lines for the user.
        command: the command, for the records.
    """

    train: Callable[[Path, float | None], None]
    refine: Callable[[RefineData, RefineSettings], None]
    score: Callable[[str, str, str], None]
    building: Callable[[], AbstractContextManager[Show]]
    decoding: Callable[[int], AbstractContextManager[Report]]
    say: Callable[[str], None]
    command: str


def refine_for_table(
    table: str,
    model: Path,
    text: BuiltText,
    settings: RefiningSettings,
    actions: RefiningActions,
    *,
    resume: bool,
    start: Path | None = None,
) -> Json:
    """Train a network for the table of a text, and refine it; return the story of the run.

    Args:
        table: the table.
        model: the directory of the refined network. Beside it, a directory `*.work` has all that
            is made on the way.
        text: the text of the table.
        settings: how to train.
        actions: see there.
        resume: whether to continue a run that is there.
        start: the network to refine; None to train one.

    Raises:
        UsageError: the directory holds another run, or the time is spent.
        MosesFeatureError: the text is too small, or not that of the table.
    """
    with locked_directory(model.with_suffix(".work"), "training"):
        return _Refinement(table, model, text, settings, actions, start).run(resume)


def verdict_of(story: Json) -> Verdict | None:
    """Return what a run has found of its column; None if there were too few sentences."""
    for stage in story["stages"]:
        if stage["stage"] == VERDICT:
            return Verdict(**{of.name: stage[of.name] for of in fields(Verdict)})
    return None


class _Refinement:
    """One run and its directory."""

    def __init__(
        self,
        table: str,
        model: Path,
        text: BuiltText,
        settings: RefiningSettings,
        actions: RefiningActions,
        start: Path | None,
    ) -> None:
        self._table = table
        self._refined = model
        self._work = work = model.with_suffix(".work")
        self._text = text
        self._settings = settings
        self._do = actions
        self._trained = work / "model"
        self._start = start or self._trained
        names = "rest", "held-out", "judged"
        self._rest, self._part, self._judged = (TextPart.within(work, name) for name in names)
        self._tuned, self._lists = work / "tuned", work / "lists.gz"

    def run(self, resume: bool) -> Json:
        """Do all stages that are not done."""
        files = {name: path for name, path in vars(self._text.files).items() if path}
        identity = {
            "texts": {name: digest_of(path) for name, path in files.items()},
            "table": digest_of(self._table),
            "building": asdict(self._text.settings),
            **self._settings.identity,
            "start": str(self._start),
        }
        stages = Stages(self._work, identity, resume, self._do.say)
        if self._settings.minutes is not None and stages.seconds():
            spent = f"{stages.seconds() / 60:.3g} of {self._settings.minutes:g} minutes"
            self._do.say(f"{spent} were spent before: --minutes is the total")
        stages.run("holding a part of the text out", self._hold_out)
        stages.run("building a system of the rest", self._build)
        planned = stages.run("planning by the speed of decoding", lambda: self._plan(stages))
        names = [of.name for of in fields(RefiningPlan)]
        plan = record(RefiningPlan, {name: planned[name] for name in names}, self._work, "a plan")
        stages.run("tuning it on the part", lambda: self._tune(plan))
        stages.run("translating the part into lists", lambda: self._translate(plan))
        if self._start == self._trained:
            stages.run(
                "training a network",
                lambda: self._do.train(self._trained, self._left(stages, TRAINING)),
            )
        kept = JUDGING if plan.judged else 0.0
        stages.run("refining it", lambda: self._refine(self._left(stages, kept=kept)))
        if plan.judged:
            stages.run(VERDICT, lambda: self._judge(plan))
        return {"text": {**files}, **stages.record}

    def _left(self, stages: Stages, share: float = 1.0, kept: float = 0.0) -> float | None:
        """Return a share of the minutes that are left; None without a budget in time.

        Args:
            stages: what is done.
            share: see above.
            kept: the share of all minutes that is kept for later stages.
        """
        if self._settings.minutes is None:
            return None
        minutes, spent = (1 - kept) * self._settings.minutes, stages.seconds() / 60
        if spent >= minutes:
            raise UsageError(
                f"--minutes {self._settings.minutes:g}: {spent:.3g} are spent, and the network is "
                "not ready; give more with --resume"
            )
        return share * (minutes - spent)

    def _hold_out(self) -> None:
        of, seed = (self._text.files, self._rest, self._part), self._settings.seed
        longest = self._text.settings.longest
        ratio, most = self._text.ratio, MOST_HELD_OUT
        hold_out(*of, longest=longest, ratio=ratio, share=HELD_OUT, most=most, seed=seed)
        if (sentences := len(self._corpus())) < FEWEST_HELD_OUT:
            raise MosesFeatureError(
                f"{self._text.files.source}: expected {round(FEWEST_HELD_OUT / HELD_OUT)} sentence "
                f"pairs at least, of which a quarter is held out, found a quarter with {sentences}"
            )
        judged = min(MOST_JUDGED, int(JUDGED * sentences))
        cut_off(self._part, self._judged, FEWEST_JUDGED, judged)

    def _build(self) -> None:
        text, rest = self._text, self._rest
        alignment = str(rest.alignment) if text.files.alignment else None
        files = str(rest.source), str(rest.target), alignment, text.model, text.model_texts
        data = BuildData(*files)
        if text.model:
            message = f"{text.model} is used as it is: has it seen the text, too?"
            self._do.say(message)
        with self._do.building() as show:
            build(data, text.settings, self._work / "system", self._do.command, show)
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

    def _corpus(self, of: TextPart | None = None, most: int | None = None) -> Corpus:
        part = of or self._part
        whole = Corpus.read(part.source, [part.target])
        return replace(whole, sentences=whole.sentences[:most], references=whole.references[:most])

    def _plan(self, stages: Stages) -> Json:
        """Measure the speed of decoding, and divide the budget by it."""
        begun = time.monotonic()
        corpus, ini = self._corpus(), MosesIni.read(self._work / "system" / INI)
        check_chain(ini, corpus, DecoderSettings())  # compiles what is needed
        judged = len(self._corpus(self._judged)) if self._judged.source.exists() else 0
        probes = corpus.sentences[: min(PROBED, len(corpus))]
        with closing(make_decoder(DecoderSettings(), ini, probes)) as decoder:
            at = time.monotonic()
            lists = self._work / "probe.gz"
            decoder.write_nbest(decoder.features, TuningSettings.list_size, lists)
            each = (time.monotonic() - at) / len(probes) / usual_jobs(len(corpus))
        spent = stages.seconds() + time.monotonic() - begun
        found = plan(self._settings.minutes, spent, each, len(corpus), judged)
        self._do.say(
            f"{1 / each:.0f} sentences a second: tuning on {found.tuned_on:,}, lists of "
            f"{found.lists:,}, the column judged on {found.judged:,}"
        )
        return asdict(found)

    def _tune(self, plan: RefiningPlan) -> None:
        corpus = self._corpus(most=plan.tuned_on)
        ini, choice = MosesIni.read(self._work / "system" / INI), DecoderSettings()
        identity = {**identity_of(ini, corpus), "decoder": decoder_identity(choice)}
        settings = TuningSettings(max_iterations=ITERATIONS, seed=self._settings.seed)
        end = time.monotonic() + plan.tuning_seconds
        with (
            closing(make_decoder(choice, ini, corpus.sentences)) as decoder,
            self._do.decoding(len(corpus)) as report,
        ):
            tune_system(
                ini,
                corpus,
                decoder,
                self._tuned,
                settings,
                identity=identity,
                command=self._do.command,
                enough=lambda: time.monotonic() > end,
                report=report,
            )

    def _translate(self, plan: RefiningPlan) -> None:
        corpus, ini = self._corpus(most=plan.lists), MosesIni.read(self._tuned / INI)
        size, settings = TuningSettings.list_size, DecoderSettings(segmentation=True)
        with (
            closing(make_decoder(settings, ini, corpus.sentences)) as decoder,
            self._do.decoding(len(corpus)) as report,
        ):
            decoder.write_nbest(
                decoder.features, size, self._lists, lambda done: report("decoding", done)
            )

    def _judge(self, plan: RefiningPlan) -> Json:
        """Compare translations with the column and without it, on sentences kept for this."""
        corpus = self._corpus(self._judged, plan.judged)
        table, ini = self._work / "judged.table.gz", self._work / "judged.ini"
        system = str(self._work / "system" / PHRASES)
        self._do.score(system, str(table), str(self._judged.source))
        add_to_ini(self._tuned / INI, ini, table)
        weight = self._column_weight()
        with self._do.decoding(len(corpus)) as report:
            found = judge(MosesIni.read(ini), corpus, weight, self._work, report)
        return asdict(found)

    def _column_weight(self) -> float:
        """Return the weight that the column was refined for."""
        path, what = self._refined / CONFIG, "the training of a refined network"
        training = member(read_json(path, what), "training", dict[str, Any], path, what)
        weight: float = member(training, "column_weight", float, path, what)
        return weight

    def _refine(self, minutes: float | None) -> None:
        part, settings = self._part, self._settings
        features = FeatureSet.of_ini(MosesIni.read(self._tuned / INI))
        texts = str(part.source), [str(part.target)], str(self._lists)
        documents = str(part.documents) if self._text.files.documents else None
        data = RefineData(self._start, *texts, features, TableWords(), None, documents)
        refining = replace(
            REFINING,
            minutes=minutes,
            seed=settings.seed,
            dtype=settings.dtype,
            dropout=settings.dropout,
        )
        self._do.refine(data, refining)


def _pairs(table: str, most: int | None = None) -> Iterator[tuple[bytes, ...]]:
    """Yield the phrase pairs of a table."""
    with LineReader(table) as reader:
        for line in islice(reader, most):
            yield tuple(field.strip() for field in line.split(SEPARATOR, 2)[:2])
