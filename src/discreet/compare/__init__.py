"""Comparisons with the truth. On the owner's side of the gate: never private."""
