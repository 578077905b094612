"""Facts: what the probe reads about the job without affecting it. Nothing here imports torch, runs the job's code, or initialises a device."""
