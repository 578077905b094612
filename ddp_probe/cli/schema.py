"""Print the JSON Schema of every event that a process writes."""

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(_args: argparse.Namespace) -> int:
    """Print the schema."""
    from ddp_probe import schema

    print(json.dumps(schema.json_schema(), indent=2, sort_keys=True))
    return 0
