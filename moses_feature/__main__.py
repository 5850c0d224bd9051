"""`python -m moses_feature`: the same as `moses-feature`, also for torchrun."""

from moses_feature.cli.common.start import main

if __name__ == "__main__":
    main(prog_name="moses-feature")
