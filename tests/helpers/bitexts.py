"""Aligned texts of words and links."""

from __future__ import annotations

import numpy as np

from moses_feature.building.bitext import Bitext, NumberedText


def bitext_of(pairs) -> Bitext:
    links = [sorted(of, key=lambda link: link[::-1]) for _, _, of in pairs]
    return Bitext(
        NumberedText.of_sentences([source for source, _, _ in pairs]),
        NumberedText.of_sentences([target for _, target, _ in pairs]),
        np.array([link for of in links for link in of], dtype=np.int16).reshape(-1, 2),
        np.cumsum([0, *map(len, links)]),
    )
