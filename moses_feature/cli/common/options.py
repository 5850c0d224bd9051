"""The options that several commands share; free of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from moses_feature.cli.common.groups import OptionGroup, options, taking
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.nbest_formats.reader import FORMATS, MOSES
from moses_feature.moses.words import WordOptions
from moses_feature.moses.xml_input import POLICIES
from moses_feature.phrases.table_words import Escaped, TableWords

format_option = option(
    "format",
    "Whose lists they are. Those of other decoders get a WordPenalty0, and what orders them.",
    to="form",
    default=MOSES,
    within=FORMATS,
)

table_name_option = option("table-name", "Of the phrase table in the ini, if it has several.")

_word_options = options(
    option(
        "source-factor", "Factor of the source tokens that is the word; the whole token by default."
    ),
    option(
        "target-factor", "Factor of the target tokens that is the word; the whole token by default."
    ),
    option(
        "hierarchical",
        "Accept hierarchical and syntax rules; each non-terminal counts as one symbol.",
    ),
)

word_options = OptionGroup("Words", "words", taking(WordOptions), _word_options)
"""How the tokens of tables become words for training."""

escaped_option = option(
    "escaped",
    "Whether tokens are escaped as Moses does (&apos;); they are turned into what the "
    "model was trained on. auto: yes.",
    default=TableWords.escaped,
    within=get_args(Escaped),
)

table_word_options = OptionGroup(
    "Words",
    "words",
    taking(TableWords),
    escaped_option,
    _word_options,
)
"""How the tokens of a table become words of a model."""

xml_option = option(
    "xml-input",
    'Lines are marked as for Moses, such as <n translation="chien">dog</n>: given translations '
    "alone (exclusive), beside those of the table (inclusive), as what the latter must have "
    "(constraint), or not at all (ignore). Without it, tags are words.",
    within=POLICIES,
)


if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class DeviceOptions:
    """The device, and the number of threads; None for all cores."""

    device: str
    threads: int | None

    def prepare(self) -> torch.device:
        """Choose the device and the number of threads."""
        import torch

        from moses_feature.training.objective import choose_device

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return choose_device(self.device)


device_options = OptionGroup(
    "Where to compute",
    "device",
    taking(DeviceOptions),
    option("device", "auto, cpu, cuda, cuda:1, … ", default="auto"),
    option("threads", "CPU threads; all cores by default."),
)
