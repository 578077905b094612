"""What may change a call: the override that says what to change, and the plan that carries it out. Unused without DDP_PROBE_FIX."""
