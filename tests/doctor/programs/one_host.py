"""One host of a launch in tests: takes a host name of its own, and then is doctor as far as the meeting.

Arguments: the host name, the file for the answers, and a JSON object: `seconds`, the `facts` of torch, and the status of a planted `check`.
With `--exec` in place of the file, it only takes the name and becomes the command that follows.
"""

import ctypes
import json
import os
import socket
import sys

_NEW_UTS = 0x04000000  # CLONE_NEWUTS: a host name of its own


def main():
    """Take the name; meet; write what came of it."""
    name, target, *rest = sys.argv[1:]
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_UTS):
        raise OSError(ctypes.get_errno(), "unshare")
    socket.sethostname(name)
    if target == "--exec":
        os.execvp(rest[0], rest)
    answers = meet(json.loads(rest[0]))
    if target != "-":
        with open("%s.%s" % (target, os.environ["RANK"]), "w", encoding="utf-8") as file:
            json.dump(answers, file)


def meet(wanted):
    """Return what this rank's doctor says of the meeting."""
    from ddp_probe.doctor.check import Answer, Check, Result
    from ddp_probe.doctor.checks import modules
    from ddp_probe.doctor.children import ChildAnswer
    from ddp_probe.doctor.examine import examine
    from ddp_probe.doctor.host import Host, Request
    from ddp_probe.doctor.meeting import gather, verdict_of_all
    from ddp_probe.report.doctor_hosts import lines

    host = Host(Request(device="cpu", seconds=wanted["seconds"]))
    if "facts" in wanted:
        host.once(("torch_facts", ()), lambda: ChildAnswer([wanted["facts"]], 0, "", 0.0))
    planted = Check("DOC999", "planted", "A check of this host.", "", "Repair it.")
    results = [Result(planted, Answer(wanted.get("check", "ok"), "It is planted.", "Repair it."), 0.0)]
    meeting = gather(host, results)
    together = list(examine(host, [module for module in modules() if module.CHECK.id.startswith("DOC8")]))
    return {
        "checks": {result.check.slug: result.as_json() for result in together},
        "verdict": verdict_of_all(meeting, together),
        "table": [line.text for line in lines(meeting, 120)],
        "meeting": meeting.as_json(),
    }


if __name__ == "__main__":
    main()
