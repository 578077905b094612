"""From processes that nobody armed to the files of a run: who is which rank, and what looks from outside show. Nothing in a process takes part."""
