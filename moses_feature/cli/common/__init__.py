"""The common parts of all commands: start and end, types of options, paths, progress."""
