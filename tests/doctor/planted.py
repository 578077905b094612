"""How tests plant one fault on a host, ask all static checks about it, and follow the words of the remedy."""

import re
import shlex
from typing import Any, Dict, List, Optional, Sequence

from ddp_probe.doctor.check import FAIL, WARN, Result
from ddp_probe.doctor.checks import static
from ddp_probe.doctor.examine import examine
from ddp_probe.doctor.host import Host, Request

STATIC = static()


class Planter:
    """Hosts with another environment, request or folder; what children said of torch and mmengine is asked once for all."""

    def __init__(self, environ: Dict[str, str]) -> None:
        self.environ = environ
        self._first = Host(Request(), environ)
        self.healthy = self.examined(self._first)

    def host(self, *words: str, environ: Optional[Dict[str, str]] = None, like: Optional[Host] = None, **request: Any) -> Host:
        """Return a host with variables set, in this process's folder; with another PYTHONPATH the children are asked again."""
        places = {name: request.pop(name) for name in ("dev", "sys", "proc") if name in request}
        host = Host(Request(command=tuple(words), **request), {**self.environ, **(environ or {})}, **places)
        if like is not None or "PYTHONPATH" not in (environ or {}):
            host._answers.update({key: found for key, found in (like or self._first)._answers.items() if isinstance(key, tuple)})
        return host

    def examined(self, host: Host, wanted: Sequence[Any] = STATIC) -> Dict[str, Result]:
        """Return the answers by slug."""
        return {result.check.slug: result for result in examine(host, wanted)}

    def failing(self, host: Host) -> Dict[str, Result]:
        """Return the checks that fail."""
        return {slug: result for slug, result in self.examined(host).items() if result.answer.status == FAIL}

    def worse(self, host: Host) -> List[str]:
        """Return the checks that fail, or warn, unlike on the healthy host."""
        now = self.examined(host)
        return [slug for slug, result in now.items() if result.answer.status in (FAIL, WARN) and result.answer != self.healthy[slug].answer]


def followed(remedy: str, environ: Dict[str, str]) -> Dict[str, str]:
    """Return the environment after the `export` and `unset` commands in a remedy, as a shell takes them."""
    after = dict(environ)
    commands = [part.strip() for part in re.split(r"; | or |, then|: ", remedy)]
    for words in (shlex.split(command.rstrip(".")) for command in commands if command.startswith(("export ", "unset "))):
        for word in words[1:]:
            name, joined, text = word.rstrip(",").partition("=")
            if words[0] == "unset":
                after.pop(name, None)
            elif joined:
                after[name] = text
    assert after != environ, "The remedy has no command: %s" % remedy
    return after
