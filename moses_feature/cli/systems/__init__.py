"""Commands for systems: a moses.ini and the files that it names."""
