"""Commands for phrase tables: augment, check, merge, favourites, propose, binarise, report."""
