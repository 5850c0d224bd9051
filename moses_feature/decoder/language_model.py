"""Language models for compiled search: states as numbers, and a cache of look-ups.

A model scores one word after one state. Here each state has a number, and a hash table caches
(state, word) -> (score, next state). On a miss, KenLM and small neural models are asked word by
word; a large neural model is asked many n-grams at a time (Cho et al. 2014, section 4.1.2). For a
large model the first answer is a guess, and the n-gram goes into a buffer. When the buffer is full
or a stack is done, the true scores replace the guesses in the table, and the computation is
repeated until it used no guess: the result is the one that true scores would have given at once.

The table is kept when the weights change. When the table or the contexts are full, they are
enlarged and the search is repeated.
"""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from moses_feature.cslm.feed_forward import NETWORK
from moses_feature.decoder.kenlm import KenlmModel, KenlmStates
from moses_feature.decoder.lookups import (
    END_OF_SENTENCE,
    NOT_KNOWN,
    WORD_BITS,
    copied,
    copy_entries,
    new_contexts,
    number_of,
    put_scores,
)
from moses_feature.decoder.records import ENTRY, PLAIN, TREE, WITH_BASE, Lookups
from moses_feature.decoder.source_phrases import surface
from moses_feature.runtime.arrays import Integers, Records
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.decoder_feature import root_of

logger = logging.getLogger(__name__)


class NgramScorer(Protocol):
    """Scores n-grams: natural logs.

    Attributes:
        order: words of an n-gram, including the predicted one.
        columns: width of a context: the `order` - 1 words before, and if the model has several
            bases, the number of the base in front of them, 0 for none.
        begin: the id that stands for each word before the beginning of a sentence.
        end: the id of the end of a sentence.
        null: the id of a missing context word, used to score words out of context.
    """

    order: int
    columns: int
    begin: int
    end: int
    null: int

    @property
    def network(self) -> Records | None:
        """The (1,) record with which compiled code scores one n-gram (`cslm.feed_forward`).

        None for a model that is faster with many n-grams at a time.
        """

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""

    def log_probs(
        self, contexts: NDArray[np.integer], words: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        """Return log p (n,) of words (n,) after contexts (n, columns), the nearest word last."""


class TreeScorer(Protocol):
    """Scores words after nodes of a prefix tree: natural logs.

    Attributes:
        end: the number of the end of a sentence.
    """

    end: int

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the numbers of words."""

    def guesses(self, words: Integers) -> NDArray[np.floating]:
        """Return approximate log p (n,) of words (n,), whatever the context."""

    def log_probs(
        self, tree: NDArray[np.int32], nodes: Integers, words: Integers
    ) -> NDArray[np.floating]:
        """Return log p (n,) of words (n,) after nodes (n,) of a tree.

        Args:
            tree: (all nodes, 2) for each node its parent, or its root, and the number of its word.
            nodes: nodes of one sentence.
            words: numbers (n,).
        """

    def forget(self) -> None:
        """Forget all nodes."""


def kind_of(model: NgramScorer) -> int:
    """Return the kind of a model's contexts: `WITH_BASE` or `PLAIN`."""
    return WITH_BASE if model.columns == model.order else PLAIN


def all_the_same(model: NgramScorer, word: int) -> Integers:
    """Return a context (columns,) that repeats one word and has no base."""
    context = np.full(model.columns, word, dtype=np.int64)
    if kind_of(model) == WITH_BASE:
        context[0] = 0
    return context


MOST_WORDS = 1 << WORD_BITS
FIRST_SLOTS = 1 << 16
FIRST_CONTEXTS = 1 << 15
MOST_STATES = 1 << 22
"""KenLM states added after `keep_states`, at about 65 bytes each; beyond it, they are forgotten."""
MOST_CONTEXTS = 1 << 22
"""The same for contexts of neural models, at about 500 bytes with scores and spare capacity."""
PAIRS = 1 << 20
BUFFER = 4096
"""N-grams that are scored in one batch, at most; 0 scores each as it is asked."""

TREE_COLUMNS = 2
"""The parent node, and the last word."""
FILLED_WITH = {"begin": "begin", "empty": "null"}
"""The attribute of a neural model whose id fills its two first contexts."""

T = TypeVar("T")


def _weakly(method: Callable[[int, int], float]) -> Callable[[int, int], float]:
    """Return a function that calls a method and does not keep its object alive.

    An object that holds itself would stay in memory in processes without garbage collection.
    """
    of_object = WeakMethod(method)

    def call(state: int, word: int) -> float:
        found = of_object()
        return 0.0 if found is None else found(state, word)

    return call


class LanguageModels:
    """Language models over a common numbering of target words, tree models last.

    Attributes:
        begin: (models,) the states at the beginning of a sentence.
        empty: (models,) the states without any context.
        words: how many words are numbered.
    """

    def __init__(
        self,
        models: Sequence[KenlmModel | NgramScorer],
        buffer: int = BUFFER,
        trees: Sequence[TreeScorer] = (),
    ) -> None:
        self._models = list(models)
        self._trees = dict(enumerate(trees, len(models)))
        self.words = 0
        of_kenlm = {n: model for n, model in enumerate(models) if isinstance(model, KenlmModel)}
        known = {n: model.addresses for n, model in of_kenlm.items() if model.addresses is not None}
        self._addresses = known if len(known) == len(of_kenlm) else {}
        self._in_python = KenlmStates(of_kenlm)
        self._error: BaseException | None = None
        widths = [0 if isinstance(model, KenlmModel) else model.columns for model in models]
        widths += [TREE_COLUMNS] * len(trees)
        kinds = [PLAIN if isinstance(model, KenlmModel) else kind_of(model) for model in models]
        kinds += [TREE] * len(trees)
        of_all = np.array([widths, kinds], dtype=np.int64)
        self._contexts = new_contexts(FIRST_CONTEXTS, *of_all)
        width = max((len(model.begin) for model in known.values()), default=0)
        room = FIRST_CONTEXTS if self._addresses else 2
        self._states = new_contexts(room, np.full(len(self), width), np.full(len(self), PLAIN))
        self._ids = np.zeros((len(self), 0), dtype=np.int32)
        self._guesses = np.zeros((len(self), 0))
        self._scored = np.zeros(1, dtype=np.int64)
        self._networks = np.zeros(len(self), dtype=NETWORK)
        for number, model in enumerate(models):
            if not isinstance(model, KenlmModel) and model.network is not None:
                self._networks[number] = model.network[0]
        self.begin = self._first_states("begin")
        self.empty = self._first_states("empty")
        self._permanent: tuple[int, ...] | None = None  # until `keep_states`, nothing is forgotten
        signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64)
        self._callbacks = signature(_weakly(self._answer)), signature(_weakly(self._flush))
        self._following, self._buffered = (np.zeros(1, dtype=np.int64) for _ in range(2))
        self._guessed, self._crowded = (np.zeros(1, dtype=np.int64) for _ in range(2))
        self._pairs = np.full(PAIRS if any(widths) else 1, NOT_KNOWN)
        self._buffer = np.zeros((buffer, 2), dtype=np.int64)
        self._results = np.zeros(max(1, buffer))
        self._table: Lookups
        self._make_table(FIRST_SLOTS)
        self.add_words([b"</s>"])

    def __len__(self) -> int:
        return len(self._models) + len(self._trees)

    @property
    def scored(self) -> int:
        """N-grams that neural models have scored."""
        return int(self._scored[0])

    def add_words(self, words: Sequence[bytes]) -> None:
        """Append target words to the common numbering.

        Raises:
            MosesFeatureError: there are more words than can be numbered.
        """
        first, self.words = self.words, self.words + len(words)
        if self.words > MOST_WORDS:
            raise MosesFeatureError(f"{self.words} target words: {MOST_WORDS} at most")
        ids = np.zeros((len(self), len(words)), dtype=np.int32)
        guesses = np.zeros(ids.shape)
        for number, model in enumerate(self._models):
            if isinstance(model, KenlmModel):
                ids[number] = model.add_words(words)
                continue
            ids[number] = model.ids(surface(words))
            if first == 0:
                ids[number, END_OF_SENTENCE] = model.end
            out_of_context = np.tile(all_the_same(model, model.null), (len(words), 1))
            guesses[number] = model.log_probs(out_of_context, ids[number].astype(np.int64))
        for number, tree in self._trees.items():
            ids[number] = tree.ids(surface(words))
            if first == 0:
                ids[number, END_OF_SENTENCE] = tree.end
            guesses[number] = tree.guesses(ids[number].astype(np.int64))
        self._ids = np.hstack([self._ids, ids])
        self._guesses = np.hstack([self._guesses, guesses])
        self._table = self._table._replace(ids=self._ids, guesses=self._guesses)

    def roots(self, sentences: int) -> Integers:
        """Return (sentences, tree models): the states at the beginning of each sentence."""
        states = np.zeros((sentences, len(self._trees)), dtype=np.int64)
        for sentence, place in np.ndindex(states.shape):
            if self._contexts.used[0] == len(self._contexts.rows):
                self._make_numbers(len(self._states.rows), 2 * len(self._contexts.rows))
            row = np.zeros(self._contexts.rows.shape[1], dtype=np.int32)
            row[[0, -2]] = len(self._models) + place, root_of(sentence)
            states[sentence, place] = 2 * number_of(self._contexts, row) + 1
        return states

    def keep_states(self) -> None:
        """Keep the current states for good; states added later may be forgotten."""
        self._permanent = tuple(self._known())

    def settled(self, compute: Callable[[Lookups], T]) -> T:
        """Return the result of compiled code, repeated until it used no guess."""
        if self._permanent is not None:
            added = np.subtract(self._known(), self._permanent)
            if (added > (MOST_STATES, MOST_STATES, MOST_CONTEXTS)).any():
                self._forget(*self._permanent)
        while True:
            lookups = self._lookups()
            lookups.guessed[0] = lookups.crowded[0] = 0
            result = compute(lookups)
            # The last guesses are still in the buffer: replace them by true scores.
            if lookups.guessed[0]:
                self._flush()
            self.check()
            # A full table gives guesses that are never corrected: enlarge it and repeat. Otherwise
            # a computation that used no guess is the one that true scores would have given.
            if lookups.crowded[0]:
                self._make_room()
            elif not lookups.guessed[0]:
                return result

    def _lookups(self) -> Lookups:
        """Return the table for compiled code, at most half full."""
        if 2 * self._table.used[0] > len(self._table.entries):
            self._make_table(2 * len(self._table.entries), self._table)
        self._make_numbers(
            *(
                2 * len(of.rows) if 2 * of.used[0] > len(of.rows) else len(of.rows)
                for of in (self._states, self._contexts)
            )
        )
        return self._table

    def check(self) -> None:
        """Raise an error that occurred while compiled code called Python, Ctrl-C for example."""
        if self._error is not None:
            error, self._error = self._error, None
            self._buffered[0] = 0
            self._make_table(len(self._table.entries))  # the old one may contain guesses
            for tree in self._trees.values():
                tree.forget()  # a state may be half computed
            raise error

    def _first_states(self, name: str) -> Integers:
        numbers = []
        for number, model in enumerate(self._models):
            if number in self._addresses:
                state = getattr(self._addresses[number], name)
                row = np.concatenate([[number], state]).astype(np.int32)
                numbers.append(2 * number_of(self._states, row))
                continue
            if isinstance(model, KenlmModel):
                numbers.append(2 * self._in_python.number(number, getattr(model, name)))
                continue
            row = np.zeros(self._contexts.rows.shape[1], dtype=np.int32)
            row[0] = number
            row[-model.columns :] = all_the_same(model, getattr(model, FILLED_WITH[name]))
            numbers.append(2 * number_of(self._contexts, row) + 1)
        return np.array(numbers, dtype=np.int64)

    def _answer(self, state: int, word: int) -> float:
        try:
            score, number = self._in_python.score(state >> 1, word)
        except BaseException as error:  # an exception cannot pass through compiled code
            self._error = error
            self._following[0] = state
            return -math.inf
        self._following[0] = 2 * number
        return score

    def _flush(self, state: int = 0, word: int = 0) -> float:
        """Score the n-grams of the buffer, or the given one; return 0, or -1 if that fails."""
        try:
            count = int(self._buffered[0])
            waiting = self._buffer if len(self._buffer) else np.array([[state, word]])
            states, words = waiting[:count].T
            contexts = self._contexts.rows[states >> 1]
            for number in np.unique(contexts[:, 0]).tolist():
                chosen = np.flatnonzero(contexts[:, 0] == number)
                ids = self._ids[number, words[chosen]].astype(np.int64)
                if number in self._trees:
                    tree = self._contexts.rows[: self._contexts.used[0], -TREE_COLUMNS:]
                    nodes = states[chosen] >> 1
                    self._results[chosen] = self._trees[number].log_probs(tree, nodes, ids)
                    continue
                model = self._models[number]
                assert not isinstance(model, KenlmModel)  # noqa: S101
                self._results[chosen] = model.log_probs(contexts[chosen, -model.columns :], ids)
            put_scores(self._table, states, words, self._results)
            self._scored[0] += count
            self._buffered[0] = 0
        except BaseException as error:  # an exception cannot pass through compiled code
            self._error = error
            return -1.0
        return 0.0

    def _make_table(self, slots: int, old: Lookups | None = None) -> None:
        ask, flush = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in self._callbacks)
        self._table = Lookups(
            entries=np.zeros(slots, dtype=ENTRY),
            used=np.zeros(1, dtype=np.int64),
            answer=self._following,
            states=self._states,
            kenlm_models=self._of_models("model"),
            kenlm_scores=self._of_models("score"),
            contexts=self._contexts,
            networks=self._networks,
            ids=self._ids,
            guesses=self._guesses,
            pairs=self._pairs,
            buffer=self._buffer,
            results=self._results,
            buffered=self._buffered,
            guessed=self._guessed,
            crowded=self._crowded,
            scored=self._scored,
            ask=ask,
            flush=flush,
        )
        if old is not None:
            copy_entries(old, self._table)

    def _of_models(self, name: str) -> Integers:
        """Return an address for each model, 0 if it is not KenLM's; empty without addresses."""
        if not self._addresses:
            return np.zeros(0, dtype=np.int64)
        of = (getattr(self._addresses.get(number), name, 0) for number in range(len(self)))
        return np.array(list(of), dtype=np.int64)

    def _known(self) -> list[int]:
        """Return the number of KenLM states, Python states, and contexts of other models."""
        return [int(self._states.used[0]), len(self._in_python), int(self._contexts.used[0])]

    def _make_numbers(self, states: int, contexts: int) -> None:
        """Resize the KenLM states and the contexts of other models."""
        if states != len(self._states.rows):
            self._states = copied(self._states, states, int(self._states.used[0]))
        if contexts != len(self._contexts.rows):
            self._contexts = copied(self._contexts, contexts, int(self._contexts.used[0]))
        self._table = self._table._replace(states=self._states, contexts=self._contexts)

    def _make_room(self) -> None:
        """Double the table, the states and the contexts."""
        self._make_table(2 * len(self._table.entries), self._table)
        self._make_numbers(2 * len(self._states.rows), 2 * len(self._contexts.rows))

    def _forget(self, states: int, in_python: int, contexts: int) -> None:
        """Forget all but the first states and contexts."""
        for tree in self._trees.values():
            tree.forget()
        self._in_python.forget(in_python)
        self._states = copied(self._states, len(self._states.rows), states)
        self._contexts = copied(self._contexts, len(self._contexts.rows), contexts)
        self._make_table(len(self._table.entries))
        logger.info("the cache of the language models was full and begins anew")
