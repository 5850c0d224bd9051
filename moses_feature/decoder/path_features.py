"""Feature values and words of paths through the graph of a search, compiled."""

from __future__ import annotations

import numpy as np

from moses_feature.decoder.graph import Graph
from moses_feature.decoder.lookups import END_OF_SENTENCE, Lookups, score_word
from moses_feature.decoder.operations import operate
from moses_feature.decoder.options import FeatureLayout, Options
from moses_feature.decoder.search import orientation
from moses_feature.runtime.arrays import Floats, Integers, Record
from moses_feature.runtime.compiled import compiled, helper


@compiled
def features_of_paths(
    graph: Graph,
    options: Options,
    paths: Integers,
    lengths: Integers,
    layout: FeatureLayout,
    lookups: Lookups,
) -> Floats:
    """Return the feature values (paths, features) of paths, natural logs or minus counts.

    Args:
        graph: the graph of a search.
        options: the phrase options of that search.
        paths: (paths, longest) hypotheses of each path, the last phrase first.
        lengths: (paths,) the number of hypotheses of each path.
        layout: the columns of the features.
        lookups: the language model look-ups.
    """
    values = np.zeros((len(paths), layout.size))
    for row in range(len(paths)):
        before, of_path = graph.hypotheses[0], values[row]
        states = options.begin_states.copy()
        for hypothesis in paths[row, : lengths[row]][::-1]:
            last = graph.hypotheses[hypothesis]
            add_phrase(of_path, before, last, layout)
            add_models(of_path, states, before, last, options, layout, lookups)
            before = last
        add_ends(of_path, states, options.target[before.option], options, layout, lookups)
    return values


@compiled
def words_of_paths(
    graph: Graph, options: Options, paths: Integers, lengths: Integers
) -> tuple[Integers, Integers]:
    """Return the target words of all paths, one path after the other, and where each path ends."""
    ends = np.zeros(len(paths), np.int64)
    size = 0
    for row in range(len(paths)):
        for place in range(lengths[row]):
            target = options.target[graph.hypotheses[paths[row, place]].option]
            size += options.word_offsets[target + 1] - options.word_offsets[target]
        ends[row] = size
    words = np.empty(size, np.int64)
    used = 0
    for row in range(len(paths)):
        for place in range(lengths[row] - 1, -1, -1):
            target = options.target[graph.hypotheses[paths[row, place]].option]
            for word in range(options.word_offsets[target], options.word_offsets[target + 1]):
                words[used] = options.words[word]
                used += 1
    return words, ends


@helper
def add_phrase(values: Floats, before: Record, last: Record, layout: FeatureLayout) -> None:
    """Add the feature values of a hypothesis after `before`, except those of language models."""
    for column in range(len(layout.fixed_columns)):
        values[layout.fixed_columns[column]] += layout.fixed[last.option, column]
    if layout.distortion >= 0:
        values[layout.distortion] -= abs(before.end + 1 - last.start)
    how = orientation(before.start, before.end, last.start, last.end)
    for table in range(len(layout.backward_columns)):
        column = layout.backward_columns[table, how]
        if column >= 0:
            values[column] += layout.backward[last.option, table, how]
        column = layout.forward_columns[table, how]
        if column >= 0 and before.option >= 0:
            values[column] += layout.forward[before.option, table, how]


@helper
def add_models(
    values: Floats,
    states: Integers,
    before: Record,
    last: Record,
    options: Options,
    layout: FeatureLayout,
    lookups: Lookups,
) -> None:
    """Add the language models' scores of a hypothesis after `before`; advance the states."""
    option = last.option
    for model in range(len(states)):
        if model == options.operations.model:
            of_phrase = option, last.start, before.gap, before.mask
            found = operate(lookups, options.operations, *of_phrase, states[model])
            for value in range(options.operations.values):
                values[layout.lm_columns[model] + value] += found.values[value]
            states[model] = found.state
            continue
        score, states[model] = score_words(lookups, options, options.target[option], states[model])
        values[layout.lm_columns[model]] += score


@helper(inline=False)
def score_words(lookups: Lookups, options: Options, target: int, state: int) -> tuple[float, int]:
    """Return a model's score of a target phrase after a state, and the state after the phrase."""
    total = 0.0
    for place in range(options.word_offsets[target], options.word_offsets[target + 1]):
        score, state = score_word(lookups, state, options.words[place])
        total += score
    return total, state


@helper
def add_ends(
    values: Floats,
    states: Integers,
    last_target: int,
    options: Options,
    layout: FeatureLayout,
    lookups: Lookups,
) -> None:
    """Add the scores of `</s>`; as in Moses, not after a phrase without words."""
    has_words = options.word_offsets[last_target + 1] > options.word_offsets[last_target]
    if has_words:
        for model in range(len(options.left)):
            score, _ = score_word(lookups, states[model], END_OF_SENTENCE)
            values[layout.lm_columns[model]] += score
