"""Brings what each host has of a run to rank 0 of a launch over all of its hosts: their folds, and with --logs their files."""
