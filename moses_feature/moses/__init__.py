"""What Moses reads and writes: phrase tables, texts, and moses.ini."""
