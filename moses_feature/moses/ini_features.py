"""The lines of a moses.ini: feature functions and their weights."""

from __future__ import annotations

from dataclasses import dataclass

TABLE_CLASS = "PhraseDictionaryMemory"
_TABLE_CLASSES = ("PhraseDictionary", "ProbingPT")
TABLE_KEYS = frozenset(
    (
        "num-features",
        "path",
        "input-factor",
        "output-factor",
        "table-limit",
        "cache-size",
        "tuneable",
        "tuneable-components",
        "filterable",
        "require-sorting-after-source-context",
        "verbosity",
    )
)
SINGLE_SCORES = frozenset(
    (
        "Distortion",
        "BilingualNPLM",
        "KENLM",
        "NeuralLM",
        "PhrasePenalty",
        "UnknownWordPenalty",
        "WordPenalty",
    )
)
TRUE, FALSE = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
"""In upper or lower case (`Scan<bool>` in `moses/Util.cpp`)."""


@dataclass(frozen=True)
class Feature:
    """A line of the [feature] section.

    Attributes:
        line_number: its line, 1-based.
        kind: the class, such as `KENLM`.
        name: the value of `name=`, else the class and a running index.
        arguments: the other keys and their values.
    """

    line_number: int
    kind: str
    name: str
    arguments: dict[str, str]

    @property
    def is_table(self) -> bool:
        """Whether it is a phrase table, in text or in a binary format."""
        return self.kind.startswith(_TABLE_CLASSES)

    @property
    def path(self) -> str:
        """Its file or folder, empty if none is given."""
        return self.arguments.get("path", "")

    @property
    def is_tuneable(self) -> bool:
        """Whether some of its weights may be tuned."""
        return self.arguments.get("tuneable", "true").lower() in TRUE

    @property
    def tuneable_components(self) -> tuple[bool, ...] | None:
        """Whether each of its weights may be tuned, if the ini gives this for each."""
        values = self.arguments.get("tuneable-components")
        if values is None:
            return None
        return tuple(value.lower() in TRUE for value in values.split(","))

    @property
    def score_count(self) -> int:
        """The number of its scores (`num-features`, 1 if not given)."""
        return int(self.arguments.get("num-features", "1"))


@dataclass(frozen=True)
class Weights:
    """A line of the [weight] section: the feature's name and its weights."""

    line_number: int
    values: tuple[float, ...]


FILE_KEYS = ("path", "source_vocab", "target_vocab")
"""The arguments of features that name files."""
