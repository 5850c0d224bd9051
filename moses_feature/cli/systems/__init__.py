"""Commands for systems: a moses.ini and what it names."""
