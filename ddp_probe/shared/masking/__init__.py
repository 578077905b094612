"""Masking: what looks like a credential is replaced by *** before it is written, and again before a log is given away. Standard library only."""
