"""python -m torch_gcu.build: compile the simulated accelerator ahead of its first use, and print where it is."""

from torch_gcu._library import build

if __name__ == "__main__":
    print(build())
