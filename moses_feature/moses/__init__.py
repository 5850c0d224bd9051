"""The file formats of Moses: phrase tables, texts, n-best lists and moses.ini."""
