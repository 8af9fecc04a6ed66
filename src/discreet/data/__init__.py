"""What we hold: domains, schemas and tables."""
