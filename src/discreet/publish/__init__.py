"""What leaves: answers, synthetic rows, the report."""
