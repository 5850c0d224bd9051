"""The workflow that makes a column of a table's text: hold out, build, tune, train, refine."""
