"""What scripts/record_jobs and scripts/gpu_check share: keeping what a job has left, without the names of this machine."""
