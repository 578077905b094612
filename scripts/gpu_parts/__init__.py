"""What scripts/gpu_check is made of: the cases and their programs, the look for a card, the launch, the judging, the table."""
