"""The commands of the tuner; the only package of `mert` that imports click."""
