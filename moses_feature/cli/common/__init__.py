"""What all commands share: how they begin and end, types of options, paths, progress."""
