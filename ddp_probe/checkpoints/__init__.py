"""Judges checkpoint files without torch and without unpickling: whether one is whole, what it holds, and what a load of it needs."""
