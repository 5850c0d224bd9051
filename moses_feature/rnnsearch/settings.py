"""Layer sizes and recipe of RNNsearch; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.networks.architectures import PairSizes
from moses_feature.sentences.recipe import Recipe


@dataclass(frozen=True)
class RnnSearchSizes(PairSizes):
    """Layer sizes of RNNsearch (Bahdanau et al. 2015, appendix A.2.3).

    Hidden units of each of the three recurrences, embedding, units of the alignment model, maxout
    units (S outputs from 2 S inputs).
    """

    hidden: int
    embedding: int
    alignment: int
    maxout: int

    def shapes(self, source_words: int, target_words: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names in `RnnSearch`."""
        hidden, embedding = self.hidden, self.embedding
        shapes: dict[str, tuple[int, ...]] = {
            "source_embedding.weight": (source_words, embedding),
            "target_embedding.weight": (target_words, embedding),
            "decoder_start.weight": (hidden, hidden),
            "decoder_start.bias": (hidden,),
            "alignment_state.weight": (self.alignment, hidden),
            "alignment_state.bias": (self.alignment,),
            "alignment_annotation.weight": (self.alignment, 2 * hidden),
            "alignment_energy.weight": (1, self.alignment),
            "decoder_context.weight": (3 * hidden, 2 * hidden),
            "maxout_state.weight": (2 * self.maxout, hidden),
            "maxout_state.bias": (2 * self.maxout,),
            "maxout_input.weight": (2 * self.maxout, embedding),
            "maxout_context.weight": (2 * self.maxout, 2 * hidden),
            "output_words.weight": (target_words, self.maxout),
            "output_words.bias": (target_words,),
        }
        for part in ("forward", "backward", "decoder"):
            shapes[f"{part}_input.weight"] = (3 * hidden, embedding)
            shapes[f"{part}_input.bias"] = (3 * hidden,)
            shapes[f"{part}_gates.weight"] = (2 * hidden, hidden)
            shapes[f"{part}_candidate.weight"] = (hidden, hidden)
        return shapes


RNNSEARCH_PRESETS = {
    "paper": RnnSearchSizes(hidden=1000, embedding=620, alignment=1000, maxout=500),
    "small": RnnSearchSizes(hidden=256, embedding=128, alignment=128, maxout=128),
}

RECIPE = Recipe(
    RNNSEARCH_PRESETS,
    {
        "hidden": "hidden units of each recurrence",
        "embedding": "word embedding",
        "alignment": "units of the alignment model",
        "maxout": "maxout units",
    },
)
