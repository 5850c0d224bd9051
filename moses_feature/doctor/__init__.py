"""What is wrong with a system before hours are spent on it."""
