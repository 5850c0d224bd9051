"""The commands; the only package of `moses_feature` that imports click."""
