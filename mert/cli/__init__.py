"""The commands of the tuner; the only room here that imports click."""
