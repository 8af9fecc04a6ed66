"""`python -m discreet` is the command `discreet`."""

from discreet.apps.cli import run

run()
