"""Print the schema of what the probe and the report write, as JSON.

WHAT is one of
  events  the JSON Schema of each line of a log, as in docs/schema.json; the
          default
  report  the JSON Schema of 'report --json', as in docs/report.json
  ledger  the layout of the binary ledger: its areas in the order of the file,
          with the place, size, type and meaning of each field, and the codes
          that fields hold; docs/ledger.md has the same as text
"""

import argparse
import json
from typing import Any, Dict

from ddp_probe.cli._commands import Command

EVENTS, REPORT, LEDGER = "events", "report", "ledger"
WHAT = (EVENTS, REPORT, LEDGER)

COMMAND = Command("schema", order=150, summary="Print the schema of the events, the report or the ledger.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", nargs="?", choices=WHAT, default=EVENTS, metavar="WHAT", help="%s; default: events" % ", ".join(WHAT))


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    schema = _schema(args.what)
    print(json.dumps(schema, indent=2, sort_keys=args.what == EVENTS))
    return 0


def _schema(what: str) -> Dict[str, Any]:
    if what == REPORT:
        from ddp_probe.showing.as_json import report_schema

        return report_schema()
    if what == LEDGER:
        from ddp_probe.reading import ledger_file

        return ledger_file.layout_as_json()
    from ddp_probe.shared import schema

    return schema.json_schema()
