"""One rank of a launch in tests: is doctor as far as the meeting.

Arguments: the file for the answers, or -, and a JSON object: `seconds`, the `facts` of torch, and the status of a planted `check`.
"""

import json
import os
import sys


def main():
    """Meet; write what came of it."""
    target, wanted = sys.argv[1:]
    answers = meet(json.loads(wanted))
    if target != "-":
        with open("%s.%s" % (target, os.environ["RANK"]), "w", encoding="utf-8") as file:
            json.dump(answers, file)


def meet(wanted):
    """Return what this rank's doctor says of the meeting."""
    from ddp_probe.doctor import host_meeting
    from ddp_probe.doctor.check import Answer, Check, Result
    from ddp_probe.doctor.checks import modules
    from ddp_probe.doctor.children import ChildAnswer
    from ddp_probe.doctor.examine import examine
    from ddp_probe.doctor.host import Host, Request
    from ddp_probe.showing.hosts_table import host_lines

    host = Host(Request(device="cpu", seconds=wanted["seconds"]))
    if "facts" in wanted:
        host.once(("torch_facts", ()), lambda: ChildAnswer([wanted["facts"]], 0, "", 0.0))
    planted = Check("DOC999", "planted", "A check of this host.", "", "Repair it.")
    results = [Result(planted, Answer(wanted.get("check", "ok"), "It is planted.", "Repair it."), 0.0)]
    met = host_meeting.meet(host, results)
    together = list(examine(host, [module for module in modules() if module.CHECK.id.startswith("DOC8")]))
    return {
        "checks": {result.check.slug: result.as_json() for result in together},
        "verdict": host_meeting.verdict_of_all(met, together),
        "table": [line.text for line in host_lines(met, 120)],
        "meeting": met.as_json(),
    }


if __name__ == "__main__":
    main()
