"""Stand-ins for cards that no test machine has: torch_gcu in plugin/ (needs g++), and labelled.py (needs nothing)."""
