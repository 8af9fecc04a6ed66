"""What it costs: losses, noise, selection, budgets, and the Curator that guards the table."""
