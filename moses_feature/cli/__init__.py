"""The commands; the only room that imports click."""
