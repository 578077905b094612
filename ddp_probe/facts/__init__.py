"""Inspects the job without affecting it: nothing here imports torch, runs the job's code, or initialises a device."""
