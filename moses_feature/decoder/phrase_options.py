"""The phrase options for a set of sentences, read from phrase and reordering tables.

Only lines whose source phrase occurs in the sentences are kept. The options themselves do not
depend on the weights; `weighted` computes the scores that a search under given weights needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from moses_feature.decoder.language_model import BUFFER, LanguageModels
from moses_feature.decoder.links import first_bad, links_error
from moses_feature.decoder.marked_options import GIVEN, UNKNOWN, MarkedOptions
from moses_feature.decoder.operation_steps import no_operations
from moses_feature.decoder.operations import OptionOperations
from moses_feature.decoder.options import WINDOW, FeatureLayout, Options, classes, ranked
from moses_feature.decoder.phrases_alone import score_without_context
from moses_feature.decoder.resources import Resources
from moses_feature.decoder.source_phrases import Sentence, SourcePhrases, surface
from moses_feature.decoder.system import MOST_OPTIONS, PhraseTable, ReorderingTable, System
from moses_feature.decoder.tables import Rows, TargetPhrases, read_reordering, read_table
from moses_feature.moses.phrase_table import LOWEST_LOG_SCORE
from moses_feature.moses.xml_input import Marks
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import MosesFeatureError

DEFAULT_LONGEST_PHRASE = 20
"""The longest source phrase in words, if the ini sets no `max-phrase-length`."""
UNKNOWN_FACTOR = b"|UNK"
"""Each further factor of an unknown word, as Moses has it."""


class PhraseOptions:
    """The phrase options for some sentences.

    Attributes:
        spans: for each sentence, (n, longest) numbers of the source phrases; see `SourcePhrases`.
        tables: the phrase tables that were read.
        offsets: (source phrases + 1,) where the options of each begin.
        target: (options,) numbers of the target phrases.
        word_offsets: (target phrases + 1,) where the words of each begin.
        table: (options,) the table of each option, -1 for an unknown word.
        links: (options,) word alignments of the phrase pairs, if the system reads them.
        models: the language models, then that of operations; they number all target words of the
            options.
        target_words: what is shown of target words, by the numbers of `shown`.

    Args:
        system: the tables and models to read.
        sentences: the sentences to translate, as tokens.
        buffer: n-grams that a neural model scores in one batch, at most.
        resources: the models, if they are loaded already.
        marks: what the input says of the translation of the sentences.
    """

    def __init__(
        self,
        system: System,
        sentences: Sequence[Sentence],
        buffer: int = BUFFER,
        resources: Resources | None = None,
        marks: Marks | None = None,
    ) -> None:
        self._system = system
        self._resources = resources or Resources.of(system)
        self.tables = system.tables
        longest = min(system.settings.get("max-phrase-length", DEFAULT_LONGEST_PHRASE), WINDOW)
        sources = SourcePhrases(sentences, longest)
        self._targets = TargetPhrases(system.target_factors)
        rows = [self._rows(table, sources) for table in system.tables]
        rows.append(self._unknown_words(sentences, sources, rows))
        self._marked = self._given(marks, sources)
        rows.append(self._marked.rows)
        self._sources_of = [part.source for part in rows]
        source = np.concatenate([part.source for part in rows])
        order = np.argsort(source, kind="stable")  # in the order of the tables
        lengths = [len(part.source) for part in rows[:-1]]
        table = np.repeat([*range(len(system.tables)), UNKNOWN], lengths)
        table = np.concatenate([table, self._marked.tables])
        self._source = source[order]
        self.target = np.concatenate([part.target for part in rows])[order]
        self.table = table[order]
        phrases = len(sources) + len(self._marked.lengths)
        self.offsets = np.searchsorted(self._source, np.arange(phrases + 1))
        self._words, self.word_offsets = self._targets.split()
        words = self._targets.words.all()
        self.target_words, self._shown = self._shown_words(words)
        self.spans = self._marked.spans
        self.layout = self._layout([part.scores for part in rows], sources)
        self._forward_class = classes(self.layout.forward)
        self.links = np.concatenate([part.links for part in rows])[order]
        self._check_links(sources)
        plain = self._resources.language_models
        self.models = LanguageModels([*plain, *self._resources.operations], buffer)
        self.models.add_words(words[1:])
        self._limits = np.array([table.limit for table in system.tables], dtype=np.int64)
        self._alone = score_without_context(self.models, len(plain), self.word_offsets, self._words)
        self._operations = self._operate(sources)

    def _rows(self, table: PhraseTable, sources: SourcePhrases) -> Rows:
        index = self._resources.indexes[table.path]
        return read_table(table, index, sources, self._targets, self._system.reads_links)

    def _unknown_words(
        self, sentences: Sequence[Sentence], sources: SourcePhrases, rows: Sequence[Rows]
    ) -> Rows:
        """Return an option that copies the word, for each word without options."""
        known = np.unique(np.concatenate([part.source for part in rows]))
        words = sorted({word for sentence in sentences for word in sentence})
        sources.gather(1)
        numbers = np.array([sources.number_of(word) for word in words], dtype=np.int64)
        unknown = np.flatnonzero(~np.isin(numbers, known)).tolist()
        others = UNKNOWN_FACTOR * (self._system.target_factors - 1)
        targets = [self._targets.number(words[number] + others) for number in unknown]
        return Rows(
            numbers[unknown],
            np.array(targets, dtype=np.int64),
            np.empty((len(unknown), 0)),
            # A token may be empty, as the first factor of `|` is: it has no word to align.
            np.array([b"0-0" if words[n] or others else b"" for n in unknown], dtype=object),
        )

    def _given(self, marks: Marks | None, sources: SourcePhrases) -> MarkedOptions:
        """Return the options that the input gives."""
        if marks is None:
            return MarkedOptions((), "ignore", sources, self._targets)
        sources.gather(sources.longest)  # so that no table adds phrases behind the new ones
        return MarkedOptions(marks.sentences, marks.policy, sources, self._targets)

    def _check_links(self, sources: SourcePhrases) -> None:
        """Check that each phrase pair has links, if they are needed.

        Raises:
            FormatError: a phrase pair has none, or bad ones.
        """
        if not self._system.reads_links:
            return
        of_phrase = [sources.phrase(n).count(b" ") + 1 for n in range(len(sources))]
        words = np.array([*of_phrase, *self._marked.lengths], dtype=np.int64)[self._source]
        bad = first_bad(self.links, words, np.diff(self.word_offsets)[self.target])
        if bad >= 0:
            pair = sources.phrase(self._source[bad]), self._targets.phrases.of(self.target[bad])
            raise links_error(self._system.tables, self._targets, *pair)

    def _operate(self, sources: SourcePhrases) -> OptionOperations | None:
        """Find and score the operations of all options, if there is a model of them."""
        if not self._system.operations:
            return None
        if self._marked.lengths:
            raise MosesFeatureError("marked input and an operation sequence model: not together")
        phrases = [surface(sources.phrase(n).split(b" ")) for n in range(len(sources))]
        targets = [surface(phrase.split()) for phrase in self._targets.phrases.all()]
        columns = self._source, self.target, self.table, self.links
        options = (
            (phrases[source], targets[target], table == UNKNOWN, links)
            for source, target, table, links in zip(*(of.tolist() for of in columns), strict=True)
        )
        of_model = self._system.features.columns(self._system.operations[0].name)
        number = len(self._system.language_models)
        return OptionOperations(options, number, of_model, self.models)

    def _layout(self, scores: Sequence[Floats], sources: SourcePhrases) -> FeatureLayout:
        system, features = self._system, self._system.features
        fixed = self._fixed_values(scores)
        used = np.flatnonzero(fixed.any(axis=0))
        distortion = system.names.get("Distortion")
        names = [model.name for model in (*system.language_models, *system.operations)]
        lm_columns = [features.columns(name)[0] for name in names]
        shape = (len(system.reordering_tables), 4)
        columns = {d: np.full(shape, -1, dtype=np.int64) for d in ("backward", "forward")}
        values = {direction: np.zeros((len(self._source), *shape)) for direction in columns}
        for number, model in enumerate(system.reordering_tables):
            of_model = self._reordering_scores(model, sources)
            first = features.columns(model.name)[0]
            for direction, orientation in itertools.product(model.type.directions, range(4)):
                column = model.type.score_column(direction, orientation)
                values[direction][:, number, orientation] = of_model[:, column]
                column = model.type.feature_column(direction, orientation)
                columns[direction][number, orientation] = first + column
        return FeatureLayout(
            size=len(features.weights),
            fixed_columns=used,
            fixed=np.ascontiguousarray(fixed[:, used]),
            distortion=features.columns(distortion)[0] if distortion else -1,
            lm_columns=np.array(lm_columns, dtype=np.int64),
            backward_columns=columns["backward"],
            forward_columns=columns["forward"],
            backward=values["backward"],
            forward=values["forward"],
        )

    def _fixed_values(self, scores: Sequence[Floats]) -> Floats:
        """Return (options, all features): the values that do not depend on the context.

        `scores` has the scores of the options of each table, in the order of the table.
        """
        system, features = self._system, self._system.features
        fixed = np.zeros((len(self._source), len(features.weights)))
        words = np.diff(self.word_offsets)[self.target]
        for kind, values in (
            ("WordPenalty", -words),
            ("PhrasePenalty", 1.0),
            ("UnknownWordPenalty", np.where(self.table == UNKNOWN, LOWEST_LOG_SCORE, 0.0)),
        ):
            if kind in system.names:
                fixed[:, features.columns(system.names[kind])[0]] = values
        for number, table in enumerate(system.tables):
            of_table = features.columns(table.name)
            columns = slice(of_table.start, of_table.stop)
            fixed[self.table == number, columns] = scores[number][
                np.argsort(self._sources_of[number], kind="stable")
            ]
            if number == 0:
                of_each = self._marked.log_probs[:, None] / len(of_table)
                fixed[self.table == GIVEN, columns] = of_each
        return fixed

    def _reordering_scores(self, model: ReorderingTable, sources: SourcePhrases) -> Floats:
        """Return (options, scores of the model); defaults (or 0) for pairs that are not in it."""
        scores = np.tile(model.default or (0.0,) * model.type.scores, (len(self._source), 1))
        rows = read_reordering(model, self._resources.indexes[model.path], sources, self._targets)
        if not len(rows.source):
            return scores
        # Of several lines for a pair the last one counts.
        mine = np.append(np.arange(len(sources)), self._marked.phrases)[self._source]
        theirs = rows.source
        if model.on_target:
            count = len(self.word_offsets)
            mine, theirs = mine * count + self.target, theirs * count + rows.target
        keys, last = np.unique(theirs[::-1], return_index=True)
        place = np.minimum(np.searchsorted(keys, mine), len(keys) - 1)
        found = keys[place] == mine
        scores[found] = rows.scores[::-1][last[place[found]]]
        return scores

    def weighted(self, weights: Floats) -> Options:
        """Return the options under weights (all features,)."""
        layout = self.layout
        fixed = layout.fixed @ weights[layout.fixed_columns]
        lm_weights = weights[layout.lm_columns]
        plain = len(self._alone.scores)
        estimate = fixed + (lm_weights[:plain] @ self._alone.scores)[self.target]
        operations, begin_states = no_operations(len(self.models.begin)), self.models.begin.copy()
        if self._operations is not None:
            operations, alone = self._operations.weighted(weights)
            estimate += alone
            lm_weights[operations.model] = 1.0
            begin_states[operations.model] = self._operations.begin
        ordered = ranked(estimate, self.offsets, self.table, self._limits, MOST_OPTIONS)
        order, first, count = self._marked.merged(ordered, estimate, self.target, self.table)
        return Options(
            order=order,
            first=first,
            size=count,
            fixed=fixed,
            estimate=estimate,
            backward=_weighted(layout.backward, layout.backward_columns, weights),
            forward=_weighted(layout.forward, layout.forward_columns, weights),
            forward_class=self._forward_class,
            target=self.target,
            word_offsets=self.word_offsets,
            words=self._words,
            empty_states=self._alone.states,
            left=self._alone.left,
            operations=operations,
            lm_weights=lm_weights,
            begin_states=begin_states,
            distortion_weight=float(weights[layout.distortion]) if layout.distortion >= 0 else 0.0,
            orientation=bool(layout.backward_columns.size),
        )

    def _shown_words(self, words: Sequence[bytes]) -> tuple[list[bytes], Integers]:
        """Return what is shown of words, and its number for each word of all phrases."""
        if self._system.target_factors == 1:
            return [*words], self._words
        shown = surface(words)
        distinct = [*dict.fromkeys(shown)]
        numbers = {word: number for number, word in enumerate(distinct)}
        of_words = np.array([numbers[word] for word in shown], dtype=np.int64)
        return distinct, of_words[self._words]

    def shown(self, options: Options) -> Options:
        """Return options with words as they are shown: of several factors the first one."""
        return options._replace(words=self._shown)

    def _check_factors(self) -> None:
        if self._system.target_factors > 1:
            raise MosesFeatureError(
                "given translations are not found in a system of several target factors"
            )

    def only_from(self, sentence: int, options: Options, reference: Integers) -> Options:
        """Return a sentence's options whose words occur consecutively in a reference."""
        joined = _joined(reference)
        order: list[int] = []
        all_first, all_size = np.zeros_like(options.first), np.zeros_like(options.size)
        for phrase in np.unique(self.spans[sentence][self.spans[sentence] >= 0]):
            first = options.first[phrase]
            all_first[phrase] = len(order)
            for option in options.order[first : first + options.size[phrase]].tolist():
                begin, end = self.word_offsets[self.target[option] :][:2]
                if _joined(self._words[begin:end]) in joined:
                    order.append(option)
            all_size[phrase] = len(order) - all_first[phrase]
        found = np.array(order, dtype=np.int64)
        return options._replace(order=found, first=all_first, size=all_size)

    def word_numbers(self, words: Sequence[bytes]) -> Integers:
        """Return the numbers of target words, -1 for words of no option."""
        self._check_factors()
        return np.array([self._targets.words.number(word) for word in words], dtype=np.int64)


def _joined(words: Integers) -> str:
    """Return word numbers as a text in which a sequence of words can be searched for."""
    return " " + "".join(f"{word} " for word in words.tolist())


def _weighted(scores: Floats, columns: Integers, weights: Floats) -> Floats:
    """Return (options, 4): the scores (options, models, 4) weighted and summed over the models."""
    of_columns = np.where(columns >= 0, weights[columns], 0.0)
    return np.ascontiguousarray((scores * of_columns).sum(axis=1))
