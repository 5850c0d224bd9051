"""Write `docs/reference/options.md`: what `--help` prints of each command. `make options`."""

from __future__ import annotations

from helpers.commands import all_commands, context_of
from helpers.files import ROOT

PAGE = ROOT / "docs" / "reference" / "options.md"
WIDTH = 80


def options_page() -> str:
    """Return the page."""
    parts = [
        "# All options",
        "What `--help` prints of each command. [Commands](commands.md) has them by task, and "
        "[the words of the command line](vocabulary.md) by name.",
    ]
    for name, command in all_commands().items():
        context = context_of(command, name, terminal_width=WIDTH)
        parts += [f"## {name}", f"```text\n{command.get_help(context).rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(options_page())
