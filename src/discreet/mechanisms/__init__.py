"""How a workload is answered: loops around the Curator's verbs."""
