"""Metrics of translations, from statistics that add up over sentences."""
