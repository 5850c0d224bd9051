"""Networks for sentence pairs, whatever their architecture."""
