"""What scripts/simulate_ranks is made of: who writes, what a training does, what goes wrong in it, what its launchers see."""
