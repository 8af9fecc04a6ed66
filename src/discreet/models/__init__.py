"""What is fitted to measurements. Post-processing only: nothing here sees a private number."""
