"""The options that say where to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moses_feature.cli.common.groups import OptionGroup, taking
from moses_feature.cli.common.vocabulary import option

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
