"""What is asked: thresholds, workloads and how they are written."""
