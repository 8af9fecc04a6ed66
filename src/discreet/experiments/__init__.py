"""Experiments: the figures of the papers, run again. For the owner's eyes: errors against the truth are NOT private."""
