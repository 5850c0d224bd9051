"""Damaged files for every reader: each must be read, or refused by an error of the project.

    python tests/fuzz/readers.py [--examples N] [--seed N] [READER ...]

`make fuzz` takes 100,000 examples a reader, the test suite some dozens.
"""

from __future__ import annotations

import argparse
import bz2
import faulthandler
import gzip
import io
import json
import logging
import lzma
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from xopen import xopen

from mert.comparison.candidate import IDENTITY
from mert.optimisers.moses_files import read_candidates, read_init
from mert.tuning.state import STATE, Iteration, TuningState, read_state
from moses_feature.building.held_out import AlignedText, TextPart, hold_out
from moses_feature.building.settings import BuildSettings
from moses_feature.building.system import BuildData, build
from moses_feature.cslm.nplm import load_neural_lm, read_nplm
from moses_feature.decoder.reordering import ReorderingType
from moses_feature.decoder.reordering_constraints import constraints_of
from moses_feature.decoder.source_phrases import SourcePhrases
from moses_feature.decoder.system import PhraseTable, ReorderingTable, System
from moses_feature.decoder.table_index import TableIndex
from moses_feature.decoder.tables import TargetPhrases, read_reordering, read_table
from moses_feature.doctor.examine import examine, examine_table
from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import LineReader, read_text
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import NbestLine, read_nbest
from moses_feature.moses.system_directory import SystemDirectory
from moses_feature.moses.words import WordOptions
from moses_feature.moses.xml_input import parse_marked
from moses_feature.networks.files import CHECKPOINT
from moses_feature.networks.pieces import PieceVocabulary, load_vocabulary
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.model import load_model
from moses_feature.phrases.packing import Packer
from moses_feature.phrases.pairs import PairCollection, read_pairs
from moses_feature.report.facts import summarise
from moses_feature.rescoring.nbest import read_weights, rescore
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.json_files import read_json
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.tables.add_to_ini import first_line_scores
from moses_feature.tables.columns import ColumnsOfModel, NewColumns
from moses_feature.tables.features_json import read_columns
from moses_feature.tables.parts import PartReader
from moses_feature.tables.settings import (
    PROBABILITY_COLUMN,
    UNKNOWN_SOURCE_COLUMN,
    UNKNOWN_TARGET_COLUMN,
)
from moses_feature.tables.significance import filter_table
from moses_feature.tables.writer import TableWriter
from moses_feature.training.checkpoint import load_checkpoint, saved_tensors

FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
SECONDS = 20
"""More for one example is a hang."""
COLUMNS = PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN, UNKNOWN_SOURCE_COLUMN
TABLE = (
    b"a ||| A ||| 0.5 0.25 ||| 0-0 ||| 1 2 3 ||| s 1 ||| {{Tree [NP]}}\n"
    b"a b ||| A B ||| 0.5 1e-3 ||| 0-0 1-1 ||| 4 2 2 ||| |||\n"
    b"\xe9t\xe9 c ||| C &apos; ||| .1 0.2\r\n"
)
INI = (
    b"[input-factors]\n0\n[mapping]\n0 T 0\n[distortion-limit]\n6\n[feature]\nUnknownWordPenalty\n"
    b"WordPenalty\nPhrasePenalty\nPhraseDictionaryMemory name=T num-features=2 path=table "
    b"input-factor=0 output-factor=0 table-limit=20\nDistortion\n"
    b"[weight]\n# comment\nUnknownWordPenalty0= 1\nWordPenalty0= -1\nPhrasePenalty0= 0.2\n"
    b"T= 0.2 0.3\nDistortion0= 0.3\n"
)
NBEST = (
    b"0 ||| A B  ||| T= 0.5 -1.25 LM0= -3 ||| -1.5\n0 ||| A  ||| T= 0.5 -1 LM0= -4 ||| -2\n"
    b"1 |||  ||| T= 0 0 LM0= 0 ||| 0\n"
)
FEATURES = (
    b"FEATURES_TXT_BEGIN_0 0 2 3 T_0 T_1 LM0_0\n0.5 -1 -3\n1 2 3\nFEATURES_TXT_END_0\n"
    b"FEATURES_TXT_BEGIN_0 1 1 3 T_0 T_1 LM0_0\n0 0 0\nFEATURES_TXT_END_0\n"
)
SCORES = (
    b"SCORES_TXT_BEGIN_0 0 2 9 BLEU\n1 2 0 1 0 0 0 0 2\n2 2 1 1 0 0 0 0 2\nSCORES_TXT_END_0\n"
    b"SCORES_TXT_BEGIN_0 1 1 9 BLEU\n1 2 0 1 0 0 0 0 2\nSCORES_TXT_END_0\n"
)
NPLM = (
    b"\\config\nversion 1\nngram_size 2\ninput_vocab_size 5\noutput_vocab_size 3\n"
    b"input_embedding_dimension 2\nnum_hidden 2\noutput_embedding_dimension 2\n"
    b"activation_function rectifier\n\n\\input_vocab\n</s>\n<unk>\na\n<s>\n<null>\n\n"
    b"\\output_vocab\n</s>\n<unk>\na\n\n\\input_embeddings\n" + b"1\t2\n" * 5 + b"\n"
    b"\\hidden_weights 1\n1\t2\n3\t4\n\n\\hidden_biases 1\n1\n2\n\n"
    b"\\hidden_weights 2\n1\t2\n3\t4\n\n"
    b"\\hidden_biases 2\n1\n2\n\n\\output_weights\n" + b"1\t2\n" * 3 + b"\n"
    b"\\output_biases\n1\n2\n3\n\n"
    b"\\end\n"
)
OTHER_LISTS = {
    "marian": b"0 ||| a b ||| 0-0 ||| WordScores= -1 ||| F0=-1.5 ||| -1\n1 ||| c ||| F0= 2 ||| 1\n",
    "json": b'{"translations": ["a b", "c"], "scores": [-1.5, 2]}\n',
}
SYSTEM = FeatureSet(
    (
        FeatureFunction("T", (0.1, 0.2), (True, True)),
        FeatureFunction("LM0", (0.5,), (True,)),
    )
)
PIECES = [
    b"",
    b"\n",
    b"\0",
    b"\xff",
    b" ",
    b"\t",
    b"\xc2\xa0",
    b"|||",
    b" ||| ",
    b"=",
    b"-",
    b"nan",
    b"inf",
    b"1e999",
    b"-1",
    b"0",
    b"9" * 30,
    b"9" * 5000,
    b"[",
    b"]",
    b"[weight]",
    b"{",
    b"}",
    b"null",
    b"true",
    b'"',
    b"\\end\n",
    b"\r\n",
    b"</s>",
    b"<s>",
    b"#",
    b"name=T",
    b"&",
    b"\xe2\x80\xa8",
]


def mutated(content: bytes, random_: random.Random) -> bytes:
    """Return a text with one to five things wrong."""
    for _ in range(random_.randint(1, 5)):
        place = random_.randrange(len(content) + 1)
        end = min(len(content), place + random_.choice((0, 1, 1, 2, 5, 20)))
        kind = random_.randrange(6)
        if kind == 0:
            content = content[:place] + content[end:]
        elif kind == 1:
            content = content[:place] + random_.choice(PIECES) + content[end:]
        elif kind == 2:
            content = content[:place] + bytes([random_.randrange(256)]) + content[place + 1 :]
        elif kind == 3:
            content = content[:place] + content[place:end] * random_.randint(2, 4) + content[end:]
        elif kind == 4:
            lines = content.split(b"\n")
            random_.shuffle(lines)
            content = b"\n".join(lines)
        else:
            content = content[:place]
    return content


def mutated_json(value: object, random_: random.Random) -> object:
    """Return a JSON value with a member that is of another kind, or missing."""
    wrong = [None, True, -1, 1.5, 10**30, "text", [], [None], {}, {"a": []}, float("nan")]
    if random_.random() < 0.15:
        return random_.choice(wrong)
    if isinstance(value, dict) and value:
        key = random_.choice(list(value))
        if random_.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: mutated_json(value[key], random_)}
    if isinstance(value, list) and value:
        place = random_.randrange(len(value))
        return [*value[:place], mutated_json(value[place], random_), *value[place + 1 :]]
    return random_.choice(wrong)


def compressions() -> dict[str, Callable[[bytes], bytes]]:
    def zst(content: bytes) -> bytes:
        buffer = io.BytesIO()
        with xopen(buffer, "wb", format="zst", threads=0) as file:
            file.write(content)
        return buffer.getvalue()

    return {
        "gz": lambda content: gzip.compress(content, mtime=0),
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zst,
    }


class Readers:
    """The readers by name; each takes a folder and a source of randomness."""

    def __init__(self, models: Path) -> None:
        self._model = models / "phrases"
        self._lm = models / "lm"
        self._sentences = models / "sentences"
        self._packer = Packer(Vocabulary((b"a", b"b")), Vocabulary((b"A", b"B")))

    def all(self) -> dict[str, Callable[[Path, random.Random], None]]:
        """Return them."""
        return {
            name.removeprefix("read_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("read_")
        }

    def read_compressed(self, folder: Path, random_: random.Random) -> None:
        """Damaged streams of all kinds, under all suffixes."""
        kind, compress = random_.choice(list(compressions().items()))
        content = mutated(b"".join(map(compress, (TABLE, TABLE))), random_)
        path = folder / f"table.{random_.choice((kind, kind, 'gz', 'txt'))}"
        path.write_bytes(content)
        with LineReader(path) as reader:
            list(reader)

    def read_table(self, folder: Path, random_: random.Random) -> None:
        """Parts with new columns."""
        path = folder / "table"
        path.write_bytes(mutated(TABLE, random_))
        words = WordOptions(hierarchical=random_.random() < 0.3)
        of_model = ColumnsOfModel(COLUMNS, self._packer, words)
        columns = NewColumns([of_model], str(path), "out")
        with LineReader(path) as reader:
            for part in PartReader(reader, 2, None, None):
                (packed,) = columns.pack(part)
                columns.append(part.number, [np.zeros(len(packed.target_lengths))])

    def read_check(self, folder: Path, random_: random.Random) -> None:
        """`doctor TABLE`."""
        (folder / "table").write_bytes(mutated(TABLE, random_))
        list(examine_table(str(folder / "table")))

    def read_pairs(self, folder: Path, random_: random.Random) -> None:
        """Phrase pairs to train on."""
        (folder / "t").write_bytes(mutated(random_.choice((TABLE, b"a b\tA B\nc\tC\n")), random_))
        with LineReader(folder / "t") as reader:
            collection = PairCollection(read_pairs(reader, WordOptions()))
        if len(collection):
            vocabulary = Vocabulary.most_frequent(collection.source_counts(), 2)
            collection.pairs(vocabulary, vocabulary, 0.1, 10, 1)

    def read_summary(self, folder: Path, random_: random.Random) -> None:
        """What a report says of an augmented table."""
        table = TABLE.replace(b"0.5", b"0.5 0.1 0.2 0.3")
        (folder / "t").write_bytes(mutated(table, random_))
        summarise(folder / "t", 3)
        first_line_scores(folder / "t")

    def read_ini(self, folder: Path, random_: random.Random) -> None:
        """An ini, changed and written again."""
        (folder / "ini").write_bytes(mutated(INI, random_))
        ini = MosesIni.read(folder / "ini")
        ini.with_weights({name: w.values for name, w in ini.weights.items()}, ["x\udcff"]).content()
        if tables := ini.tables():
            ini.with_scores(tables[0], folder / "new", [0.1, 0.0]).write(folder / "out")
        ini.with_feature("NeuralLM name=N", "N", [1.0])

    def read_factored_table(self, folder: Path, random_: random.Random) -> None:
        """A phrase table whose target words have two factors, with links."""
        (folder / "table").write_bytes(mutated(TABLE.replace(b" ||| A ", b" ||| A|X "), random_))
        table = PhraseTable(str(folder / "table"), "T", 2, 20)
        targets = TargetPhrases(2)
        sources = SourcePhrases([[b"a", b"b"]], 5)
        read_table(table, TableIndex(table.path), sources, targets, with_links=True)
        targets.split()

    def read_system(self, folder: Path, random_: random.Random) -> None:
        """What an ini asks of the embedded decoder."""
        (folder / "table").write_bytes(TABLE)
        content = INI.replace(b"path=table", f"path={folder}/table".encode())
        (folder / "ini").write_bytes(mutated(content, random_))
        System.of_ini(MosesIni.read(folder / "ini"))

    def read_reordering_table(self, folder: Path, random_: random.Random) -> None:
        """A lexicalised reordering table."""
        content = b"a ||| A ||| 0.5 0.2 0.3 0.1 0.1 0.8\na b ||| B ||| 1 1 1 1 1 1\n"
        (folder / "r").write_bytes(mutated(content, random_))
        kind = ReorderingType.parse("wbe-msd-bidirectional-fe-allff")
        table = ReorderingTable(str(folder / "r"), "R", kind, True, None)
        targets = TargetPhrases()
        targets.number(b"A")
        sources = SourcePhrases([[b"a", b"b"]], 5)
        read_reordering(table, TableIndex(table.path), sources, targets)

    def read_nbest_list(self, folder: Path, random_: random.Random) -> None:
        """N-best lists, for the tuner and for rescoring."""
        (folder / "n").write_bytes(mutated(NBEST, random_))
        with suppress(MosesFeatureError):
            list(read_nbest(folder / "n", SYSTEM, 2))
        with NbestReader(folder / "n") as reader:
            list(rescore(reader, [], {"T": (0.1, 0.2), "LM0": (0.5,)}))

    def read_other_lists(self, folder: Path, random_: random.Random) -> None:
        """N-best lists of other decoders: what is read is a list of Moses."""
        form = random_.choice(list(OTHER_LISTS))
        (folder / "n").write_bytes(mutated(OTHER_LISTS[form], random_))
        with NbestReader(folder / "n", form) as reader:
            for line in reader:
                NbestLine(line, "lists", 1)

    def read_by_the_doctor(self, folder: Path, random_: random.Random) -> None:
        """A system and a text, damaged somewhere: findings, and no error."""
        content = {
            "table": TABLE,
            "lm": b"\\data\\\nngram 1=5\n\n\\1-grams:\n-9\t<unk>\n-9\t<s>\n-9\t</s>\n-1\tA\n-2\tB\n"
            b"\n\\end\\\n",
            "ini": INI.replace(b"path=table", f"path={folder}/table".encode()).replace(
                b"Distortion\n[", f"KENLM name=Distortion0 path={folder}/lm\n[".encode()
            ),
            "source": b"a b\nc\n" * 30,
            "target": b"A B\nC\n" * 30,
        }
        damaged = random_.choice(list(content))
        for name, whole in content.items():
            (folder / name).write_bytes(mutated(whole, random_) if name == damaged else whole)
        for finding in examine(folder / "ini", str(folder / "source"), [str(folder / "target")]):
            assert finding.what
            str(finding)

    def read_weights_file(self, folder: Path, random_: random.Random) -> None:
        """Weights for rescoring."""
        (folder / "w").write_bytes(mutated(b"# x\nT= 0.1 0.2\nLM0= 0.5\n", random_))
        read_weights(folder / "w")

    def read_feature_files(self, folder: Path, random_: random.Random) -> None:
        """Moses' feature, score and init files."""
        contents = [FEATURES, SCORES, b"1 1 1\n0 0 0\n1 1 1\n"]
        damaged = random_.randrange(3)
        contents[damaged] = mutated(contents[damaged], random_)
        for name, content in zip("fsi", contents, strict=True):
            (folder / name).write_bytes(content)
        candidates = read_candidates(folder / "f", folder / "s")
        read_init(folder / "i", len(candidates.names))

    def read_texts(self, folder: Path, random_: random.Random) -> None:
        """Sentences."""
        (folder / "t").write_bytes(mutated(b"a b c\n\nd\xff e|f\n", random_))
        read_text(folder / "t")

    def read_vocabulary(self, folder: Path, random_: random.Random) -> None:
        """A shortlist."""
        (folder / "v").write_bytes(mutated(b"</s>\n<unk>\na\nb\nc\n", random_))
        Vocabulary.load(folder / "v")

    def read_subwords(self, folder: Path, random_: random.Random) -> None:
        """A shortlist of subwords, and sentencepiece's model beside it."""
        damaged = random_.choice(("source.vocab", "source.pieces"))
        for name in ("source.vocab", "source.pieces"):
            content = (self._sentences / name).read_bytes()
            (folder / name).write_bytes(mutated(content, random_) if name == damaged else content)
        vocabulary = load_vocabulary(folder / "source.vocab")
        if isinstance(vocabulary, PieceVocabulary):
            words = [b"walking", b"caf\xe9", b"x-N"]
            assert vocabulary.words(vocabulary.ids(words)) == words

    def read_nplm_file(self, folder: Path, random_: random.Random) -> None:
        """A language model in NPLM's format."""
        (folder / "m").write_bytes(mutated(NPLM, random_))
        read_nplm(folder / "m").sentence_log_probs([[b"a", b"x"]])

    def read_model(self, folder: Path, random_: random.Random) -> None:
        """A model directory, of one network or of a language model."""
        source = random_.choice((self._model, self._lm, self._sentences))
        files = sorted(path for path in source.rglob("*") if path.is_file())
        damaged = random_.choice(files)
        for path in files:
            content = path.read_bytes()
            if path == damaged:
                is_json = path.suffix == ".json" and random_.random() < 0.7
                content = (
                    json.dumps(mutated_json(json.loads(content), random_)).encode()
                    if is_json
                    else mutated(content, random_)
                )
            copy = folder / "m" / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        if source == self._sentences:
            model = SentenceModel(folder / "m")
            model.log_probs([model.ids([b"walking"], [b"x"])])
        else:
            load_neural_lm(folder / "m") if source == self._lm else load_model(folder / "m")

    def read_checkpoint(self, folder: Path, random_: random.Random) -> None:
        """The state of a training run."""
        network = torch.nn.Linear(2, 2)
        optimizer = torch.optim.Adam(network.parameters())
        network(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        tensors = saved_tensors(network, optimizer)
        name = random_.choice(list(tensors))
        shape = random_.choice([(), (1,), (2,), (2, 2), (4,), None])
        del tensors[name]
        if shape is not None:
            tensors[name] = torch.zeros(shape)
        state = mutated_json({"state": '{"update": 1}', "identity": "{}"}, random_)
        metadata = {"learning_rate": "0.1", **(state if isinstance(state, dict) else {})}
        save_file(tensors, folder / CHECKPOINT, {n: str(v) for n, v in metadata.items()})
        if random_.random() < 0.3:
            content = (folder / CHECKPOINT).read_bytes()
            (folder / CHECKPOINT).write_bytes(mutated(content, random_))
        load_checkpoint(folder, network, optimizer, {})
        optimizer.step()

    def read_features_json(self, folder: Path, random_: random.Random) -> None:
        """The description of a table, and of shards."""
        facts = {
            "columns": [{"name": "p", "index": 2}],
            "output": "t",
            "lines_written": 1,
            "clipped_scores": 0,
            "unknown_source_words": 0,
            "unknown_target_words": 0,
            "command": "c",
        }
        (folder / "t").write_bytes(b"abc")
        (folder / "t.features.json").write_text(json.dumps(mutated_json(facts, random_)))
        read_columns(folder / "t")

    def read_bitext(self, folder: Path, random_: random.Random) -> None:
        """Two texts, links and documents; a part of them held out."""
        files = {"en": b"a b\nc &apos; d\ne\n", "fr": b"A B\nC D\nE F\n"}
        files |= {"links": b"0-0 1-1\n0-0 2-1\n0-1\n", "documents": b"x\ny\ny\n"}
        damaged = random_.choice([*files])
        for name, content in files.items():
            (folder / name).write_bytes(mutated(content, random_) if name == damaged else content)
        parts = [TextPart.within(folder, name) for name in ("rest", "part")]
        text = AlignedText(*(str(folder / name) for name in files))
        hold_out(text, *parts, longest=100, share=0.5, most=9, seed=1)
        alignment = str(folder / "links") if random_.random() < 0.9 else None
        data = BuildData(text.source, text.target, alignment)
        if alignment:
            build(data, BuildSettings(order=2), folder / "s")

    def read_system_directory(self, folder: Path, random_: random.Random) -> None:
        """The `system.json` of a tuned system, and of one that was built."""
        (folder / "moses.ini").write_bytes(INI)
        tuned = {"format_version": 1, "ini": "moses.ini", "built": None, "weights": "w"}
        tuned |= {"rescoring": [["N0", "model"]], "list_size": 100, "tuned": {}}
        of_system = random_.choice((tuned, {"format_version": 1, "inputs": []}))
        (folder / "system.json").write_text(json.dumps(mutated_json(of_system, random_)))
        SystemDirectory.read(folder)

    def read_significance(self, folder: Path, random_: random.Random) -> None:
        """A table and its texts, for the significance filter."""
        files = {"table": TABLE, "en": b"a b\na b\nc\n", "fr": b"A B\nA\nC &apos;\n"}
        damaged = random_.choice([*files])
        for name, content in files.items():
            (folder / name).write_bytes(mutated(content, random_) if name == damaged else content)
        of = (str(folder / name) for name in files)
        filter_table(*of, random_.choice(("a+e", "a-e", "2")), folder / "out")

    def read_marked_input(self, _: Path, random_: random.Random) -> None:
        """A line with tags."""
        line = b'a <n translation="A||B" prob="0.5||1" span="0-1">b</n> <wall/> <zone>c</zone>'
        marked = parse_marked(mutated(line, random_))
        assert all(0 <= of.start < of.end <= len(marked.words) for of in marked.given)
        constraints_of(marked)

    def read_index(self, folder: Path, random_: random.Random) -> None:
        """A table that is looked up, with an index that may be damaged."""
        path = str(folder / "t")
        (folder / "t").write_bytes(mutated(TABLE, random_) if random_.random() < 0.7 else TABLE)
        TableIndex(path)
        facts = Path(f"{path}.index/index.json")
        if random_.random() < 0.5:
            facts.write_bytes(mutated(facts.read_bytes(), random_))
        sources, table = SourcePhrases([[b"a", b"b"], [b"c"]], 5), PhraseTable(path, "T", 2, 20)
        read_table(table, TableIndex(path), sources, TargetPhrases())

    def read_journal(self, folder: Path, random_: random.Random) -> None:
        """The journal of an unfinished table."""
        import hashlib

        journal = {"bytes": 3, "sha256": "0", "progress": {"lines": 1}, "identity": {"model": "x"}}
        text = json.dumps(mutated_json(journal, random_))
        digest = hashlib.sha256(text.encode()).hexdigest()
        content = f"{digest}\n{text}".encode()
        if random_.random() < 0.3:
            content = mutated(content, random_)
        (folder / "out.journal").write_bytes(content)
        (folder / "out.partial").write_bytes(b"abc")
        writer = TableWriter(str(folder / "out"))
        try:
            writer.resume({"model": "x"})
        finally:
            writer.close()

    def read_tuning_state(self, folder: Path, random_: random.Random) -> None:
        """The state of a tuning run, and the identity of a comparison."""
        iteration = Iteration([0.5, 0.5], 0.3, 10, 10, [0.4, 0.6], 0.4, 0.1, "x", (1.0, 2.0))
        state = asdict(TuningState({"version": 1}, 15, [iteration, iteration], "done", ["T_0"]))
        damaged = mutated_json(json.loads(json.dumps(state)), random_)
        (folder / STATE).write_text(json.dumps(damaged))
        (folder / IDENTITY).write_bytes(mutated(b'{"dev": ["x"]}', random_))
        with suppress(MosesFeatureError):
            read_json(folder / IDENTITY, "the identity of a comparison")
        found = read_state(folder, {"version": 1}, 15)
        assert not found.stopped or found.best.quality is not None


def make_models(folder: Path) -> Path:
    """Write small models of all kinds."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from helpers.models import TRANSFORMER_SIZES, random_model
    from helpers.toy import random_neural_lm

    from moses_feature.cslm.settings import LM_ARCHITECTURE
    from moses_feature.networks.files import write_model_files
    from moses_feature.networks.pair_network import network_of
    from moses_feature.networks.pieces import learn_pieces
    from moses_feature.phrases.model import PhraseModel, save_model

    save_model(folder / "phrases", random_model())
    pieces = learn_pieces([b"walking talking", b"quickly over lazy dogs"] * 20, 300, "text")
    network = network_of(TRANSFORMER_SIZES, len(pieces), len(pieces))
    network.initialise(torch.Generator().manual_seed(1))
    save_model(folder / "sentences", PhraseModel(network, pieces, pieces, WordOptions(), {}, False))
    write_model_files(folder / "lm", LM_ARCHITECTURE, random_neural_lm(np.random.default_rng(1)))
    return folder


def fuzz(name: str, read: Callable[[Path, random.Random], None], examples: int, seed: int) -> int:
    """Try a reader; return how many examples were read without an error."""
    good = 0
    for example in range(examples):
        with tempfile.TemporaryDirectory(dir=FAST) as f:
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                read(Path(f), random.Random(f"{name} {seed} {example}"))
                good += 1
            except MosesFeatureError:
                pass
            except Exception as error:
                error.add_note(f"reader {name}, seed {seed}, example {example}")
                raise
            finally:
                faulthandler.cancel_dump_traceback_later()
    return good


def main() -> None:
    """Try all readers, or some."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as models:
        readers = Readers(make_models(Path(models))).all()
        failures = 0
        for name in arguments.readers or readers:
            began = time.monotonic()
            try:
                good = fuzz(name, readers[name], arguments.examples, arguments.seed)
            except Exception:
                traceback.print_exc()
                failures += 1
                continue
            print(
                f"{name:18} {arguments.examples:,} examples, {good:,} read, the others refused, "
                f"{time.monotonic() - began:.0f} s",
                flush=True,
            )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
