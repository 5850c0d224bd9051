"""The moses.ini of a system that was built, with the start weights of Moses' `train-model.perl`."""

from __future__ import annotations

from pathlib import Path

from moses_feature.decoder.reordering import ReorderingType
from moses_feature.moses.ini import moses_path

TEXT = """\
[input-factors]
0

[mapping]
0 T 0

[distortion-limit]
{limit}

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={phrases} \
input-factor=0 output-factor=0
{lines}KENLM name=LM0 factor=0 path={model} order={order}

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
{weights}LM0= 0.5
"""


OPERATION_MODEL, OPERATION_WEIGHTS = "OpSequenceModel0", (0.08, -0.02, 0.02, -0.001, 0.03)
"""The name of the operation sequence model, and its start weights."""


def operation_line(path: Path) -> str:
    """Return the line of an operation sequence model."""
    return f"OpSequenceModel name={OPERATION_MODEL} num-features=5 path={moses_path(path)}"


def start_ini(
    phrases: Path,
    model: Path,
    order: int,
    limit: int,
    reordering: tuple[ReorderingType, Path] | None,
    operations: Path | None,
) -> bytes:
    """Return an ini that Moses and the embedded decoder read as it is.

    Args:
        phrases: the phrase table.
        model: the language model.
        order: its order.
        limit: the distortion limit; 0 for translations in the order of the source.
        reordering: the type and the table of the reordering model, if there is one.
        operations: the operation sequence model, if there is one.
    """
    lines = weights = ""
    if reordering is not None:
        kind, path = reordering
        output = " output-factor=0" if kind.on_target else ""
        lines += (
            f"LexicalReordering name=LexicalReordering0 num-features={kind.features} "
            f"type={kind.name} input-factor=0{output} path={moses_path(path)}\n"
        )
        weights += f"LexicalReordering0= {' '.join(['0.3'] * kind.features)}\n"
    if limit:
        lines += "Distortion\n"
        weights += "Distortion0= 0.3\n"
    if operations is not None:
        lines += f"{operation_line(operations)}\n"
        weights += f"{OPERATION_MODEL}= {' '.join(map(str, OPERATION_WEIGHTS))}\n"
    text = TEXT.format(
        limit=limit,
        phrases=moses_path(phrases),
        lines=lines,
        model=moses_path(model),
        order=order,
        weights=weights,
    )
    return text.encode(errors="surrogateescape")
