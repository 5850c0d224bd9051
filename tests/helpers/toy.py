"""Tiny random systems for the decoder, and every translation that they can make."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import kenlm
import numpy as np

from helpers.plain_operations import Phrase, plain_values
from moses_feature.building.language_model import estimate
from moses_feature.cslm.scorer import VOCABULARY
from moses_feature.cslm.settings import LM_ARCHITECTURE as ARCHITECTURE
from moses_feature.cslm.settings import LmSizes
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.reordering import ReorderingType
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.networks.files import ModelFiles, write_model_files
from moses_feature.networks.vocabulary import END, Vocabulary

OPERATIONS = Path(__file__).parents[1] / "decoder/data/operation_sequences.json"
SOURCE = ["a", "b", "c", "d"]
TARGET = ["A", "B", "C", "D", "E"]
TYPE = "wbe-msd-bidirectional-fe-allff"


@dataclass
class Toy:
    """A system in files, and the same in dictionaries.

    Attributes:
        folder: where the files are.
        tables: of each phrase table, target phrases and natural logs by source phrase.
        reordering: natural logs by source and target phrase; empty without a model.
        types: names of the reordering models' types.
        limit: distortion limit.
        models: language models.
        neural: files of neural language models.
        links: of each phrase table, word alignments by source and target phrase.
        operations: an operation sequence model.
    """

    folder: Path
    tables: list[dict[str, dict[str, list[float]]]]
    reordering: list[dict[tuple[str, str], list[float]]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    limit: int = 6
    models: list[kenlm.Model] = field(default_factory=list)
    neural: list[ModelFiles] = field(default_factory=list)
    links: list[dict[tuple[str, str], str]] = field(default_factory=list)
    operations: kenlm.Model | None = None

    @property
    def ini(self) -> MosesIni:
        """The system's moses.ini."""
        return MosesIni.read(self.folder / "moses.ini")


def make_toy(
    folder: Path,
    *,
    seed: int = 1,
    types: tuple[str, ...] = (TYPE,),
    tables: int = 1,
    models: int = 1,
    neural: int = 0,
    operations: bool = False,
    limit: int = 6,
    longest: int = 3,
    options: int = 3,
) -> Toy:
    """Write a random system: all source phrases up to a length over four words."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    toy = Toy(folder, [], types=list(types), limit=limit)
    for number in range(tables):
        table: dict[str, dict[str, list[float]]] = {}
        for length in range(1, longest + 1):
            for words in itertools.product(SOURCE, repeat=length):
                if length > 1 and generator.random() < 0.4:
                    continue
                found = {
                    " ".join(generator.choice(TARGET, generator.integers(1, length + 2)))
                    for _ in range(options)
                }
                table[" ".join(words)] = {t: _logs(generator, 2) for t in sorted(found)}
        toy.tables.append(table)
        links = _random_links(np.random.default_rng([seed, number]), table)
        toy.links.append(links)
        lines = [
            f"{source} ||| {target} ||| {_text(logs)} ||| {links[source, target]} ||| 1 1 1\n"
            for source, targets in sorted(table.items())
            for target, logs in targets.items()
        ]
        (folder / f"table{number}").write_text("".join(lines))
    for number, name in enumerate(types):
        toy.reordering.append(_write_reordering(toy, generator, number, name))
    for number in range(models):
        path = folder / f"lm{number}.arpa"
        path.write_text(random_arpa(np.random.default_rng([seed, number])))
        toy.models.append(kenlm.Model(str(path)))
    for number in range(neural):
        toy.neural.append(random_neural_lm(np.random.default_rng([seed, number])))
        write_model_files(folder / f"neural{number}", ARCHITECTURE, toy.neural[-1])
    toy.operations = _write_operations(folder, operations)
    (folder / "moses.ini").write_text(_ini(toy, generator))
    return toy


def _random_links(
    generator: np.random.Generator, table: dict[str, dict[str, list[float]]]
) -> dict[tuple[str, str], str]:
    """Return word alignments, in no order; some words have none, and some several."""
    links = {}
    for source, targets in table.items():
        for target in targets:
            all_links = [
                f"{s}-{t}" for s in range(len(source.split())) for t in range(len(target.split()))
            ]
            count = generator.integers(1, len(all_links) + 1)
            links[source, target] = " ".join(generator.permutation(all_links)[:count])
    return links


def _logs(generator: np.random.Generator, count: int) -> list[float]:
    return np.log(np.round(generator.uniform(0.01, 1, count), 4)).tolist()


def _text(logs: list[float]) -> str:
    return " ".join(f"{math.exp(log):.4f}" for log in logs)


def _write_reordering(toy: Toy, generator, number: int, name: str):
    kind = ReorderingType.parse(name)
    table: dict[tuple[str, str], list[float]] = {}
    for phrases in toy.tables:
        for source, targets in phrases.items():
            for target in targets:
                key = (source, target if kind.on_target else "")
                if generator.random() < 0.85:  # some pairs have no scores
                    table.setdefault(key, _logs(generator, kind.scores))
    lines = [
        f"{source} ||| {target} ||| {_text(logs)}\n"
        if kind.on_target
        else f"{source} ||| {_text(logs)}\n"
        for (source, target), logs in sorted(table.items())
    ]
    (toy.folder / f"reordering{number}").write_text("".join(lines))
    return table


def random_arpa(generator: np.random.Generator) -> str:
    """Return a trigram model over the target words; it does not sum to one, nobody looks."""
    words = ["<unk>", "<s>", "</s>", *TARGET]
    bigrams = [
        (a, b)
        for a, b in itertools.product(["<s>", *TARGET], [*TARGET, "</s>"])
        if generator.random() < 0.5
    ]
    trigrams = [
        (a, b, c)
        for (a, b), (b2, c) in itertools.product(bigrams, bigrams)
        if b == b2 and generator.random() < 0.5
    ]

    def number(low: float) -> str:
        return f"{generator.uniform(low, -0.05):.4f}"

    lines = [
        "\\data\\",
        f"ngram 1={len(words)}",
        f"ngram 2={len(bigrams)}",
        f"ngram 3={len(trigrams)}",
        "",
        "\\1-grams:",
    ]
    for word in words:
        value = "-99" if word == "<s>" else number(-2)
        lines.append(f"{value}\t{word}" + ("" if word == "</s>" else f"\t{number(-0.7)}"))
    lines += ["", "\\2-grams:"]
    lines += [
        f"{number(-1.5)}\t{a} {b}" + ("" if b == "</s>" else f"\t{number(-0.5)}")
        for a, b in bigrams
    ]
    lines += ["", "\\3-grams:"]
    lines += [f"{number(-1)}\t{' '.join(ngram)}" for ngram in trigrams]
    return "\n".join([*lines, "", "\\end\\", ""])


NEURAL_SIZES = LmSizes(order=4, projection=3, first=7, second=5)


def random_neural_lm(generator: np.random.Generator) -> ModelFiles:
    """Return a neural language model that knows all target words but one."""
    vocabulary = Vocabulary(tuple(word.encode() for word in TARGET[:-1]))
    weights = {
        name: generator.normal(scale=0.8, size=shape).astype(np.float32)
        for name, shape in NEURAL_SIZES.shapes(len(vocabulary)).items()
    }
    config = {"sizes": asdict(NEURAL_SIZES), "training": {}}
    return ModelFiles(config, {VOCABULARY: vocabulary}, weights)


def neural_score(files: ModelFiles, text: str) -> float:
    """Return log p of a sentence and its end, one word after the other."""
    weights = {name: array.astype(np.float64) for name, array in files.weights.items()}
    before = NEURAL_SIZES.order - 1
    ids = [END] * before + files.vocabularies[VOCABULARY].ids(text.encode().split()) + [END]
    total = 0.0
    for place in range(before, len(ids)):
        units = weights["projection.weight"][ids[place - before : place]].reshape(-1)
        for layer in ("first", "second"):
            units = np.maximum(0, weights[f"{layer}.weight"] @ units + weights[f"{layer}.bias"])
        logits = weights["output.weight"] @ units + weights["output.bias"]
        total += logits[ids[place]] - math.log(np.exp(logits).sum())
    return total


def _ini(toy: Toy, generator) -> str:
    def weights(count: int) -> str:
        return " ".join(f"{value:.4f}" for value in generator.uniform(0.05, 0.5, count))

    features = ["UnknownWordPenalty", "WordPenalty", "PhrasePenalty"]
    lines = ["UnknownWordPenalty0= 1", "WordPenalty0= -0.3", "PhrasePenalty0= 0.1"]
    for number in range(len(toy.tables)):
        features.append(
            f"PhraseDictionaryMemory name=TM{number} num-features=2 "
            f"path={toy.folder}/table{number} input-factor=0 output-factor=0"
        )
        lines.append(f"TM{number}= {weights(2)}")
    for number, name in enumerate(toy.types):
        kind = ReorderingType.parse(name)
        features.append(
            f"LexicalReordering name=LR{number} num-features={kind.features} type={name} "
            f"input-factor=0 {'output-factor=0 ' if kind.on_target else ''}"
            f"path={toy.folder}/reordering{number}"
        )
        lines.append(f"LR{number}= {weights(kind.features)}")
    features.append("Distortion")
    lines.append("Distortion0= 0.15")
    for number in range(len(toy.models)):
        features.append(f"KENLM name=LM{number} factor=0 path={toy.folder}/lm{number}.arpa order=3")
        lines.append(f"LM{number}= {weights(1)}")
    for number in range(len(toy.neural)):
        features.append(
            f"NeuralLM name=CSLM{number} factor=0 order={NEURAL_SIZES.order} "
            f"path={toy.folder}/neural{number}"
        )
        lines.append(f"CSLM{number}= {weights(1)}")
    if toy.operations is not None:
        features.append(f"OpSequenceModel name=OSM0 num-features=5 path={toy.folder}/osm.arpa")
        lines.append(f"OSM0= {weights(1)} -0.04 0.05 -0.06 0.07")
    mapping = "\n".join(f"{number} T {number}" for number in range(len(toy.tables)))
    return (
        f"[input-factors]\n0\n\n[mapping]\n{mapping}\n\n[distortion-limit]\n{toy.limit}\n\n"
        f"[feature]\n{chr(10).join(features)}\n\n[weight]\n{chr(10).join(lines)}\n"
    )


@dataclass(frozen=True)
class Step:
    """A phrase of a derivation.

    Attributes:
        start, end: its first and last source word.
        target: its words.
        table: the table it is from; -1 of an unknown word, -2 of a translation that was given.
        log_prob: of a given translation.
    """

    start: int
    end: int
    target: str
    table: int
    log_prob: float = 0.0


Steps = Callable[[int, int], list[Step]]
Allowed = Callable[[frozenset[int], int, int], bool]


def all_derivations(
    toy: Toy,
    sentence: list[str],
    options: Steps | None = None,
    allowed: Allowed = lambda *_: True,
) -> Iterator[list[Step]]:
    """Yield every derivation that the distortion limit allows (`SearchCubePruning.cpp`).

    Args:
        toy: the system.
        sentence: the sentence.
        options: the phrases of a span, first and last word; those of the tables by default.
        allowed: whether a span may follow when some words are covered.
    """

    def of_tables(start: int, end: int) -> list[Step]:
        return options_of(toy, sentence, start, end)

    yield from _go_on(toy, sentence, [], frozenset(), options or of_tables, allowed)


def _go_on(
    toy: Toy, sentence, steps: list[Step], covered: frozenset, options: Steps, allowed: Allowed
) -> Iterator[list[Step]]:
    if len(covered) == len(sentence):
        yield steps
        return
    gap = min(set(range(len(sentence))) - covered)
    before = steps[-1].end if steps else -1
    for start in range(len(sentence)):
        for end in range(start, len(sentence)):
            span = set(range(start, end + 1))
            if span & covered or abs(before + 1 - start) > toy.limit:
                continue
            if start != gap and abs(end + 1 - gap) > toy.limit:
                continue
            if not allowed(covered, start, end):
                continue
            for step in options(start, end):
                made = [*steps, step]
                yield from _go_on(toy, sentence, made, covered | span, options, allowed)


def options_of(toy: Toy, sentence: list[str], start: int, end: int) -> list[Step]:
    """Return what the tables have for a span; an unknown word is copied."""
    phrase = " ".join(sentence[start : end + 1])
    found = [(target, n) for n, table in enumerate(toy.tables) for target in table.get(phrase, {})]
    found = found or ([(phrase, -1)] if start == end else [])
    return [Step(start, end, target, table) for target, table in found]


def features_of(toy: Toy, sentence: list[str], steps: list[Step]) -> np.ndarray:
    """Return all feature values of a derivation, computed as plainly as possible."""
    features = FeatureSet.of_ini(toy.ini)
    values = np.zeros(len(features.weights))

    def add(name: str, index: int, value: float) -> None:
        values[features.columns(name)[index]] += value

    before: Step | None = None
    for step in steps:
        source = " ".join(sentence[step.start : step.end + 1])
        add("WordPenalty0", 0, -len(step.target.split()))
        add("PhrasePenalty0", 0, 1)
        for name, index, log in _table_scores(toy, source, step):
            add(name, index, log)
        add("Distortion0", 0, -abs((before.end if before else -1) + 1 - step.start))
        for name, column, log in _reordering_of(toy, sentence, before, step):
            add(name, column, log)
        before = step
    text = " ".join(step.target for step in steps)
    for number, model in enumerate(toy.models):
        add(f"LM{number}", 0, model.score(text) * math.log(10))
    for number, files in enumerate(toy.neural):
        add(f"CSLM{number}", 0, neural_score(files, text))
    for index, value in enumerate(_operation_values(toy, sentence, steps)):
        add("OSM0", index, value)
    return values


def _operation_values(toy: Toy, sentence: list[str], steps: list[Step]) -> list[float]:
    if toy.operations is None:
        return []
    found = []
    for step in steps:
        source = sentence[step.start : step.end + 1]
        links, target = "0-0", ["_TRANS_SLF_"]
        if step.table >= 0:
            links, target = (
                toy.links[step.table][" ".join(source), step.target],
                step.target.split(),
            )
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        found.append(Phrase(step.start, source, target, pairs))
    return np.sum(plain_values(toy.operations, len(sentence), found), axis=0).tolist()


def _write_operations(folder: Path, wanted: bool) -> kenlm.Model | None:
    if not wanted:
        return None
    path = folder / "osm.arpa"
    path.write_bytes(operations_arpa())
    return kenlm.Model(str(path))


def operations_arpa() -> bytes:
    """Return a model of the operations in `operation_sequences.json`."""
    lines = json.loads(OPERATIONS.read_text())["operations"]
    return b"".join(estimate([line.encode().split() for line in lines], 3).arpa())


def links_of_steps(toy: Toy, sentence: list[str], steps: list[Step]) -> str:
    """Return the word alignment of a derivation as Moses writes it."""
    parts = []
    written = 0
    for step in steps:
        phrase = " ".join(sentence[step.start : step.end + 1])
        links = toy.links[step.table][phrase, step.target] if step.table >= 0 else "0-0"
        pairs = sorted(tuple(map(int, link.split("-"))) for link in links.split())
        parts += [f"{step.start + s}-{written + t}" for s, t in pairs]
        written += len(step.target.split())
    return " ".join(parts)


def segmentation_of_steps(steps: list[Step]) -> str:
    """Return the phrases of a derivation as Moses writes them."""
    parts, written = [], 0
    for step in steps:
        words = len(step.target.split())
        source = f"{step.start}-{step.end}" if step.end > step.start else f"{step.start}"
        target = f"{written}-{written + words - 1}" if words > 1 else f"{written}"
        parts.append(f"{source}={target}")
        written += words
    return " ".join(parts)


def _table_scores(toy: Toy, source: str, step: Step) -> list[tuple[str, int, float]]:
    if step.table == -1:
        return [("UnknownWordPenalty0", 0, -100)]
    if step.table == -2:
        return [("TM0", index, step.log_prob / 2) for index in range(2)]
    logs = toy.tables[step.table][source][step.target]
    return [(f"TM{step.table}", index, log) for index, log in enumerate(logs)]


def _reordering_of(
    toy: Toy, sentence: list[str], before: Step | None, step: Step
) -> Iterator[tuple[str, int, float]]:
    """Yield name, column and natural log of what the reordering models say of a step."""
    for number, name in enumerate(toy.types):
        kind = ReorderingType.parse(name)
        for direction in kind.directions:
            scored = step if direction == "backward" else before
            if scored is None:
                continue
            words = " ".join(sentence[scored.start : scored.end + 1])
            logs = toy.reordering[number].get((words, scored.target if kind.on_target else ""))
            if logs is None:
                continue
            way = _orientation(name, before, step)
            second = direction != kind.directions[0]
            if kind.collapsed:  # Moses reads the second direction from score 1 on
                yield f"LR{number}", int(second), logs[second + way]
            else:
                offset = kind.scores // 2 if second else 0
                yield f"LR{number}", offset + way, logs[offset + way]


def _orientation(name: str, before: Step | None, step: Step) -> int:
    """Return which score of a direction applies (`LRModel::GetOrientation`), written out anew."""
    if "leftright" in name:
        return 0 if before is None or before.end <= step.start else 1
    if step.start == (before.end + 1 if before else 0):
        return 0
    if "monotonicity" in name:
        return 1
    if before is not None and before.start == step.end + 1:
        return 1
    if "msd" in name:
        return 2
    return 3 if before is None or step.start > before.end else 2


def write_corpus(toy: Toy, folder: Path, seed: int, size: int = 25) -> tuple[Path, Path]:
    """Write random sentences, and as references what the toy's own weights make of them."""
    generator = np.random.default_rng(seed)
    sentences = [
        [b"abcd"[n : n + 1] for n in generator.integers(0, 4, generator.integers(5, 9))]
        for _ in range(size)
    ]
    decoder = EmbeddedDecoder(System.of_ini(toy.ini), sentences)
    source, target = folder / f"{seed}.in", folder / f"{seed}.ref"
    source.write_bytes(b"".join(b" ".join(sentence) + b"\n" for sentence in sentences))
    target.write_bytes(
        b"".join(b" ".join(decoder.translate(n)[0].words) + b"\n" for n in range(size))
    )
    return source, target
