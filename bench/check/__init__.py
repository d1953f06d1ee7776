"""A check against regressions: this tree beside an earlier commit, on one API server: `make bench-check`."""
