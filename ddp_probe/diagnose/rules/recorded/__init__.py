"""Recorded logs that the examples of the rules read: one file for a rule, named after it, with nothing but logs in it."""
