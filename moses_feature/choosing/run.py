"""The best system that a time allows: parts are tried on held-out text, and kept if they gain.

The system of the whole text is built first. Two parts of its text are held out: weights are tuned
on one, and systems judged on the other. A system of the rest is tuned; if the text is not small,
the same with an operation sequence model; and the better of both with a sentence network that
rescores its lists. What gains on the judged part, more than chance would let it, is kept. The
result is the system of the whole text, and of the development set that was given, with the weights
that were found for that of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import count, takewhile
from pathlib import Path

from mert.comparison.candidate import Candidate
from mert.comparison.compare import compare
from mert.comparison.results import SystemResult, TuningRun
from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus, check_chain
from mert.tuning.plan import seconds_of
from mert.tuning.state import RESCORING_WEIGHTS, SEARCH, TUNED_INI
from moses_feature.building.bitext import read_alignment, read_texts
from moses_feature.building.built_text import BuiltText, text_of_system
from moses_feature.building.held_out import AlignedText, TextPart, hold_out
from moses_feature.building.language_model import write_model
from moses_feature.building.operations import ORDER, PRUNED, operation_sentences
from moses_feature.building.preparation import Preparation, Preparer, decoded, preparation_of
from moses_feature.building.settings import SMALL
from moses_feature.building.spelling import Spelling
from moses_feature.building.start_ini import OPERATION_MODEL, OPERATION_WEIGHTS, operation_line
from moses_feature.building.system import SIDES, BuildData, build
from moses_feature.choosing.inputs import (
    HELD_OUT,
    MOST_HELD_OUT,
    Choosing,
    check_inputs,
    check_size,
    lines_of,
)
from moses_feature.choosing.plan import (
    ITERATIONS,
    LEAST_NETWORK,
    POP_LIMITS,
    RUNS,
    ChoosingPlan,
    plan,
)
from moses_feature.decoder.limits import SearchLimits
from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.moses.lines import LineReader, digest_of
from moses_feature.moses.marked_models import MBR
from moses_feature.moses.system_directory import INI, write_tuned
from moses_feature.refining.stages import STAGES, Stages
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import (
    Json,
    locked_directory,
    open_output,
    write_whole,
)
from moses_feature.runtime.json_files import read_json, record

CHANCE = 0.1
"""A gain with a greater p-value may be chance, and is not worth a part."""
PHRASES, OSM, NETWORK = "phrases", "osm", "network"
"""The names of the systems that are compared."""
LONG, SEEN = 4, 0.05
"""Blanks in a sentence that is hardly written twice, and the share of them that may be known."""
JOINED = "text.{}.gz"
"""The text and the given development set, which the system that is written is built of."""
RESCORED = 100
"""Translations of each sentence that a network rescores."""

Show = Callable[[str, float | None], None]
"""Called with the current step, and its share that is done."""


@dataclass(frozen=True)
class ChoosingActions:
    """What the caller brings: training, and how progress is shown.

    Attributes:
        train: trains a network for sentences on the texts of a part, for so many minutes, in a
            model directory; one that was interrupted is trained further.
        building: a context in which a build shows its progress.
        comparing: a context in which tuning shows its progress, given the sentences of both texts.
        say: called with lines for the user.
        command: the command, for the records.
    """

    train: Callable[[TextPart, float, Path], None]
    building: Callable[[], AbstractContextManager[Show]]
    comparing: Callable[[int, int], AbstractContextManager[Callable[[str, int], None]]]
    say: Callable[[str], None]
    command: str


def choose(task: Choosing, actions: ChoosingActions) -> Json:
    """Build the best system, or continue a build that was killed; return what each stage found.

    Raises:
        UsageError: the directory holds something else, or the minutes are too few.
        MosesFeatureError: bad texts, or too few sentences.
    """
    check_inputs(task)
    with locked_directory(task.directory, "building"):
        if not (task.directory / STAGES).exists():
            there = sorted(of.name for of in task.directory.iterdir() if of.name[0] != ".")
            if there:
                raise UsageError(
                    f"{task.directory}: expected a new or empty directory, found {there[0]}"
                )
        return _Choice(task, actions).run()


@dataclass(frozen=True)
class PartVerdict:
    """What a part brings on the judged text.

    Attributes:
        before, after: BLEU, 0 to 100, without it and with it; means over the tuning runs.
        p: of the difference.
    """

    before: float
    after: float
    p: float

    @property
    def gains(self) -> bool:
        """Whether the part is worth keeping."""
        return self.after > self.before and self.p <= CHANCE

    def __str__(self) -> str:
        kept = "kept" if self.gains else "left out"
        gain = self.after - self.before
        return f"BLEU {self.before:.2f} to {self.after:.2f} ({gain:+.2f}, p {self.p:.3f}): {kept}"


class _Choice:
    """One run and its directory."""

    def __init__(self, task: Choosing, actions: ChoosingActions) -> None:
        self._task = task
        self._do = actions
        home = self._home = task.directory
        self._whole, self._built = home / "built", home / "rest"
        names = "held-in", "dev", "judged"
        self._rest, self._dev, self._judged = (TextPart.within(home, name) for name in names)
        self._compared, self._network = home / "compared", home / "network"

    def run(self) -> Json:
        """Do all stages that are not done."""
        task, data = self._task, self._task.data
        names = "source", "target", "alignment", "documents"
        files = {name: getattr(data, name) for name in names}
        files |= {f"lm-text {n}": path for n, path in enumerate(data.model_texts, 1)}
        if task.dev is not None:
            files["dev"] = task.dev[0]
            files |= {f"dev-reference {n}": path for n, path in enumerate(task.dev[1], 1)}
        identity = {
            "texts": {name: path and digest_of(path) for name, path in files.items()},
            "building": asdict(task.settings),
            "model": data.model,
            "languages": data.languages and [*data.languages],
            "seed": task.seed,
        }
        stages = Stages(self._home, identity, True, self._do.say)
        stages.save()
        stages.run("building a system of the whole text", self._build_whole)
        stages.run("holding parts of the text out", self._hold_out)
        stages.run("building a system of the rest", self._build_rest)
        found = stages.run("planning by the speed of decoding", lambda: self._plan(stages))
        of_plan = {name: found[name] for name in ChoosingPlan.__dataclass_fields__ if name in found}
        planned = record(ChoosingPlan, of_plan, self._home, "a plan")
        runs = stages.run("tuning the weights", lambda: self._tune(planned))["runs"]
        phrases = PHRASES
        if not self._is_small:
            of_osm = stages.run(
                "an operation sequence model", lambda: self._try(planned, PHRASES, OSM)
            )
            phrases = OSM if of_osm["kept"] else PHRASES
            runs = runs | of_osm["runs"]
        best = phrases
        if found["minutes"] != task.minutes:
            self._do.say(f"what was planned for {found['minutes']:g} minutes is done")
        left = found["minutes"] - stages.seconds() / 60 - planned.rescoring
        most = max(planned.network, left)
        if most >= LEAST_NETWORK or self._network.exists():
            trained = stages.run("training a network", lambda: self._train(most))
            if trained["failed"] is None:
                of_network = stages.run(
                    "lists rescored by the network", lambda: self._rescore(planned, phrases)
                )
                best = NETWORK if of_network.get("kept") else best
                runs = runs | of_network.get("runs", {})
        else:
            self._do.say(
                f"there is no time to train a network: {max(most, 0):.0f} minutes are left"
            )
        stages.run("writing the system", lambda: self._write(best, phrases == OSM, runs[best]))
        return stages.record

    @cached_property
    def _is_small(self) -> bool:
        """Whether the text is so small that an operation sequence model brought nothing."""
        return sum(1 for _ in lines_of(self._rest.source)) < SMALL

    @cached_property
    def _text(self) -> BuiltText:
        """The text of the whole system, as its tables have it."""
        return text_of_system(self._whole, None)

    def _build_whole(self) -> None:
        data, dev = self._task.data, self._task.dev
        if dev is not None and not (data.alignment or data.documents):  # which it does not have
            source = self._joined(SIDES[0], data.source, dev[0])
            target = self._joined(SIDES[1], data.target, dev[1][0])
            data = replace(data, source=source, target=target)
        with self._do.building() as show:
            build(data, self._task.settings, self._whole, self._do.command, show)

    def _joined(self, side: str, *texts: str) -> str:
        """Write texts one behind the other; return the file."""
        path = self._home / JOINED.format(side)
        with open_output(path) as file:
            for text in texts:
                with LineReader(text) as reader:
                    file.writelines(line.rstrip(b"\r\n") + b"\n" for line in reader)
        return str(path.absolute())

    def _hold_out(self) -> None:
        task, text = self._task, self._text.files
        lines = sum(1 for _ in lines_of(task.data.source))
        hold = partial(
            hold_out,
            rest=self._rest,
            longest=self._text.settings.longest,
            ratio=self._text.ratio,
            most=MOST_HELD_OUT,
            seed=task.seed,
        )
        hold(text, part=self._judged, share=HELD_OUT, lines=lines)
        if task.dev is None:
            hold(_aligned(self._rest), part=self._dev, share=HELD_OUT / (1 - HELD_OUT))
        else:
            self._prepare_dev(*task.dev)
        self._warn_of_seen()
        if task.data.languages and self._preparation(SIDES[0]).known is not None:
            spelling = Spelling(self._rest.source, self._rest.target)
            for part in (self._dev, self._judged):
                spelt = "".join(f"{spelling(line.decode())}\n" for line in lines_of(part.source))
                write_whole(part.source, spelt.encode())
        for part in (self._dev, self._judged):
            check_size(part.source, len(_corpus(part)))

    def _preparation(self, side: str) -> Preparation:
        """Return how the texts of a language were prepared."""
        return preparation_of(read_json(self._whole / SYSTEM, "a system"), side, self._whole)

    def _prepare_dev(self, text: str, references: Sequence[str]) -> None:
        """Write the given development set as the tables have their text."""
        texts = [(SIDES[0], text, self._dev.source)]
        for number, path in enumerate(references):
            texts.append((SIDES[1], path, _reference(self._dev, number)))
        for side, path, prepared in texts:
            with LineReader(path) as reader, open_output(prepared) as file:
                if not self._task.data.languages:
                    file.writelines(reader)
                    continue
                preparer = Preparer(self._preparation(side))
                file.writelines(preparer(line).encode() + b"\n" for line in decoded(reader))

    def _warn_of_seen(self) -> None:
        """Say which texts have sentences of the development set."""
        dev = {line for line in lines_of(self._dev.target) if line.count(b" ") >= LONG}
        for path in map(str, (self._rest.target, *self._text.model_texts)):
            seen = dev.intersection(lines_of(path))
            if len(seen) > SEEN * len(dev):
                self._do.say(
                    f"warning: {path} has {len(seen):,} of the {len(dev):,} longer translations to "
                    "tune on: the weights will be wrong for new text"
                )

    def _build_rest(self) -> None:
        text, rest = self._text, _aligned(self._rest)
        if text.model:
            self._do.say(f"{text.model} is used as it is: has it seen the text, too?")
        data = BuildData(rest.source, rest.target, rest.alignment, text.model, text.model_texts)
        with self._do.building() as show:
            build(data, text.settings, self._built, self._do.command, show)
        self._add_operations(self._built / INI, rest, self._home / "rest.osm.ini")

    def _add_operations(self, ini: Path, text: AlignedText, output: Path) -> None:
        """Estimate an operation sequence model of a text, and write an ini that names it."""
        model = output.with_suffix(".arpa.gz")
        if not model.exists():
            how = self._text.settings.longest, self._text.ratio
            pairs = read_texts(text.source, text.target, *how)
            assert text.alignment is not None  # noqa: S101  # a built system has links
            bitext = read_alignment(text.alignment, pairs)[0]
            write_model(model, operation_sentences(bitext), ORDER, PRUNED)
        line = operation_line(model)
        changed = MosesIni.read(ini).with_feature(line, OPERATION_MODEL, OPERATION_WEIGHTS)
        changed.write(output)

    def _plan(self, stages: Stages) -> Json:
        corpus, ini = _corpus(self._dev), MosesIni.read(self._built / INI)
        decoder = DecoderSettings(limits=SearchLimits(POP_LIMITS[0]))
        each = seconds_of(corpus, check_chain(ini, corpus, decoder), decoder) / len(corpus)
        judged = len(_corpus(self._judged))
        systems = 2 if self._is_small else 3
        found = plan(self._task.minutes, stages.seconds(), each, len(corpus), judged, systems)
        self._do.say(
            f"{1 / each:.0f} sentences a second: weights on {found.tuned_on:,} sentences, pop "
            f"limit {found.pops}, {found.network:.0f} minutes or more for a network; "
            f"judged on {judged:,}"
        )
        return {**asdict(found), "minutes": self._task.minutes}

    def _candidate(self, name: str, best: str = PHRASES) -> Candidate:
        """Return a system of the rest; a network rescores the lists of the best other one."""
        phrases = best if name == NETWORK else name
        ini = self._built / INI if phrases == PHRASES else self._home / "rest.osm.ini"
        path = str(self._network)
        models = (("T", path), ("A", f"{MBR}:{path}")) if name == NETWORK else ()
        return Candidate(name, MosesIni.read(ini), models)

    def _tune(self, planned: ChoosingPlan) -> Json:
        """Tune the system that all others are compared with."""
        found = self._compare(planned, [self._candidate(PHRASES)])
        return {"runs": {PHRASES: _best_run(found[PHRASES]).seed}}

    def _try(self, planned: ChoosingPlan, before: str, name: str) -> Json:
        """Tune a system beside the best one before, and judge it."""
        names = [PHRASES] if before == PHRASES else [PHRASES, before]
        results = self._compare(planned, [self._candidate(of, before) for of in (*names, name)])
        verdict = _verdict(results[before], results[name])
        self._do.say(f"{name}: {verdict}")
        runs = {of: _best_run(results[of]).seed for of in (before, name)}
        return {**asdict(verdict), "kept": verdict.gains, "runs": runs}

    def _compare(
        self, planned: ChoosingPlan, candidates: list[Candidate]
    ) -> dict[str, SystemResult]:
        dev, judged = _corpus(self._dev, planned.tuned_on), _corpus(self._judged)
        decoder = DecoderSettings(limits=SearchLimits(planned.pops))
        tuning = TuningSettings(algorithm="mira", max_iterations=ITERATIONS, seed=self._task.seed)
        with self._do.comparing(len(dev), len(judged)) as report:
            found = compare(
                candidates,
                dev,
                judged,
                self._compared,
                decoder,
                tuning,
                RUNS,
                command=self._do.command,
                force=True,
                report=report,
            )
        return {system.name: system for system in found.systems}

    def _train(self, minutes: float) -> Json:
        """Train a network; one that cannot be trained is left out."""
        try:
            self._do.train(self._rest, minutes, self._network)
        except MosesFeatureError as error:
            self._do.say(f"the network is left out: {error}")
            return {"failed": f"{error}"}
        return {"failed": None}

    def _rescore(self, planned: ChoosingPlan, before: str) -> Json:
        """Try the network in lists; one that cannot score them is left out."""
        try:
            return self._try(planned, before, NETWORK)
        except MosesFeatureError as error:
            self._do.say(f"the network is left out: {error}")
            return {"failed": f"{error}"}

    def _write(self, best: str, osm: bool, seed: int) -> None:
        """Write the system of the whole text, with the weights of the best run."""
        run = self._compared / best / f"seed-{seed}"
        search = run / SEARCH if best == NETWORK else run
        ini, with_osm = self._whole / INI, self._home / "built.osm.ini"
        if osm:
            self._add_operations(ini, self._text.files, with_osm)
        weights = MosesIni.read(search / TUNED_INI).weights_by_name()
        comment = f"weights tuned on {self._dev.source}, for a system without the held-out text"
        changed = MosesIni.read(with_osm if osm else ini).with_weights(weights, [comment])
        changed.write(self._home / INI)
        models: list[tuple[str, str]] = []
        if best == NETWORK:
            write_whole(self._home / RESCORING_WEIGHTS, (run / RESCORING_WEIGHTS).read_bytes())
            models = [*self._candidate(NETWORK).rescoring]
        name = RESCORING_WEIGHTS if models else None
        facts = {"on": str(self._dev.source), "best": best}
        write_tuned(self._home, self._whole, models, name, RESCORED, facts)
        dev = self._task.dev
        if dev is not None and (self._home / JOINED.format(SIDES[0])).exists():
            self._do.say(f"{dev[0]} is text of {self._home} now: do not tune on it again")


def _aligned(part: TextPart) -> AlignedText:
    """Return a part as a text."""
    links, documents = (
        str(path) if path.exists() else None for path in (part.alignment, part.documents)
    )
    return AlignedText(str(part.source), str(part.target), links, documents)


def _reference(part: TextPart, number: int) -> Path:
    """Return a translation of a part, counted from 0."""
    return part.target.with_name(f"{part.target.name}{f'.{number}' if number else ''}")


def _corpus(part: TextPart, most: int | None = None) -> Corpus:
    numbers = takewhile(lambda number: _reference(part, number).exists(), count())
    whole = Corpus.read(part.source, [_reference(part, number) for number in numbers])
    return replace(whole, sentences=whole.sentences[:most], references=whole.references[:most])


def _verdict(before: SystemResult, after: SystemResult) -> PartVerdict:
    """Return what a system brings over one that was compared before it."""
    of_others = {name: p for name, _, p, _ in after.against}
    p = of_others.get(before.name, after.p)
    bleu_before, bleu_after = (float(of.scores("test").mean()) for of in (before, after))
    return PartVerdict(bleu_before, bleu_after, 1.0 if p is None else p)


def _best_run(system: SystemResult) -> TuningRun:
    """Return the run with the best BLEU on the development set, one that uses all parts if any."""
    return max(
        system.runs, key=lambda run: (not (run.kept_order or run.kept_baseline), run.dev_score)
    )
