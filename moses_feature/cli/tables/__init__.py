"""Commands for phrase tables: augment, check, merge, look at, propose, binarise, report."""
