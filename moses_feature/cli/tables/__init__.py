"""Commands for phrase tables: augment, filter, report."""
