"""Systems compared as in the paper's Table 1."""
