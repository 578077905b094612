"""What scripts/bench measures, how it counts, and how it prints."""
