"""Find faults of a system before hours are spent on it."""
