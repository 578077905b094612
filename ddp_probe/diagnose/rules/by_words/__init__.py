"""Causes that are known by their words alone, one file each: RULE with its texts, and EXAMPLES. They are data and hold no code.

The texts decide: one that a process died of, or that a plain log shows, is the finding. A cause that needs more than its
words, such as another event or another rank, is a file with a check() one folder up.
"""
