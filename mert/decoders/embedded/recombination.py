"""Hypotheses that nothing which follows can tell apart, compiled."""

from __future__ import annotations

import numpy as np

from mert.decoders.embedded.contexts import hash_of_end, same_end
from mert.decoders.embedded.groups import hash_of_cubes, same_cubes
from mert.decoders.embedded.records import Hypotheses, Options, Problem
from moses_feature.arrays import Integers, Record, Records
from moses_feature.compiled import inner, part
from moses_feature.hash_table import first_place, mixed, next_place


@inner
def _same_future(one: Record, other: Record, options: Options) -> bool:
    """Return whether no phrase that follows can tell two hypotheses apart."""
    same = same_cubes(one, other) and one.written == other.written
    if options.orientation:
        same = same and one.start == other.start
        class_of_other = options.forward_class[other.option]
        same = same and options.forward_class[one.option] == class_of_other
    return same


@inner
def recombine(new: int, table: Integers, hypotheses: Hypotheses, problem: Problem) -> None:
    """Put a hypothesis into a hash table, and together with others of the same future.

    The table holds the best of those that recombine, -1 where there is none. Models of trees see
    all words: that those before the last ones make no difference is an approximation.
    """
    records, states, options = hypotheses.records, hypotheses.states, problem.options
    contexts = problem.lookups.contexts
    made = records[new]
    hashed = mixed(hash_of_cubes(made), made.written)
    for model in range(options.trees):
        hashed = mixed(hashed, states[new, model])
    for model in range(options.trees, states.shape[1]):
        words = options.history[model - options.trees]
        hashed = mixed(hashed, hash_of_end(contexts, states[new, model] >> 1, words))
    slot = first_place(hashed, len(table))
    while table[slot] >= 0:
        best = table[slot]
        same = _same_future(records[best], made, options)
        for model in range(options.trees):
            same = same and states[best, model] == states[new, model]
        for model in range(options.trees, states.shape[1]):
            one, other = states[best, model] >> 1, states[new, model] >> 1
            words = options.history[model - options.trees]
            same = same and same_end(contexts, one, other, words)
        if same:
            break
        slot = next_place(slot, len(table))
    best = table[slot]
    if best < 0:
        table[slot] = new
    elif made.score > records[best].score:
        made.next_worse = best
        table[slot] = new
    else:
        made.next_worse = records[best].next_worse
        records[best].next_worse = new


@part
def best_first(table: Integers, hypotheses: Records) -> Integers:
    """Return the hypotheses in a hash table; of equal ones the one made earlier comes first."""
    found = np.sort(table[table >= 0])
    best: Integers = found[np.argsort(-hypotheses["total"][found], kind="mergesort")]
    return best
