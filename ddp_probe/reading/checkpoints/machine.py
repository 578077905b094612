"""Follows the opcodes of a pickle and builds data from them. Nothing is imported, called or unpickled, whatever the pickle says.

pickletools.genops decodes the opcodes. Every size is bounded: opcodes, values, texts that are kept, and memo numbers. An object that a pickle
refers to many times is one object here too, so a pickle that would grow exponentially does not.
"""

import pickletools
from typing import Any

from ddp_probe.reading.checkpoints.model import BrokenError, UnknownError
from ddp_probe.reading.checkpoints.opcodes import PLAIN, WITH_ARGUMENT
from ddp_probe.reading.checkpoints.pickle_stream import PickleStream
from ddp_probe.reading.checkpoints.stack import Stack, TooDeepError

OPCODES = 12_000_000  # About 250,000 tensors.
VALUES = 4_000_000  # About half a gigabyte, if each is a dict.
TEXT = 64 << 20  # Characters in all.
_MARKS = 100_000  # Open at the same time.
_WRONG = (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError)


class Machine(Stack):
    """An unpickling that does not happen. Several pickles of one file share its limits."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def run(self, stream: PickleStream, record: str = "") -> Any:
        """Return the object of the next pickle in the stream."""
        self.restart()
        at = stream.tell()
        try:
            for opcode, argument, position in pickletools.genops(stream):
                at = position or 0
                self._count += 1
                name = opcode.name
                if name == "FRAME" and not stream.has(argument or 0):
                    raise BrokenError("The pickle ends in the middle: a frame of %s bytes is not there." % argument, record, at)
                self.opcodes.add(name)
                handler = PLAIN.get(name)
                if handler is not None:
                    handler(self)
                else:
                    WITH_ARGUMENT[name](self, argument)
                if self._count > OPCODES or self.values > VALUES or self.texts > TEXT or len(self.metastack) > _MARKS:
                    raise UnknownError("Its pickle is larger than what is followed: %d opcodes, %d values." % (self._count, self.values))
            return self.stack.pop()
        except TooDeepError:
            raise UnknownError("Its pickle is nested more deeply than what is followed.") from None
        except _WRONG as exc:
            raise BrokenError(_words(exc, ended=stream.ended), record, at) from exc


def _words(exc: Exception, *, ended: bool) -> str:
    """Return why the pickle cannot be followed."""
    if ended:
        return "The pickle ends in the middle."
    if isinstance(exc, (IndexError, KeyError)):
        return "The pickle refers to an object that it has not made."
    return "The pickle is not valid: %s." % str(exc)[:200]
