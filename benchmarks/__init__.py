"""Speed, memory and accuracy, measured side by side. Run `python -m benchmarks --data FOLDER`."""
