"""Looks at the job and never touches it: nothing here imports torch, runs the job's code, or initialises a device."""
