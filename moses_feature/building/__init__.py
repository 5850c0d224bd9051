"""From two texts to a phrase-based system: alignment, tables, language model, moses.ini."""
