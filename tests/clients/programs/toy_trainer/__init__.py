"""A training program that is installed as a wheel; own_wheel.py builds and installs it."""
