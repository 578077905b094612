"""What chose the model of a forward pass: the value is followed back through the source of the job."""

import time
from typing import List, Optional, Tuple

import pytest

from ddp_probe.reading.job_source import JobFile
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.chosen_value import chosen_callee
from ddp_probe.standing.source_trees import SourceTrees

RETURNED = """\
def better(quick, slow):
    if quick.loss < slow.loss:
        return quick.model
    return slow.model


def validate(model, loader):
    for inputs in loader:
        logits = model(inputs)


validate(better(quick, slow), loader)
"""
GENERATED = """\
class Alternate:
    def __iter__(self):
        while readers:
            for name in list(readers):
                try:
                    batch = next(readers[name])
                except StopIteration:
                    continue
                yield name, batch


class Trainer:
    def step(self, name, batch):
        loss = entropy(self.models[name](batch), labels)


for name, batch in Alternate(loaders):
    trainer.step(name, batch)
"""
CHOSEN = """\
def train(first, second):
    model = first if clock() > 5 else second
    model(batch)


train(first, second)
"""
PLAIN = """\
def train(model):
    model(batch)


train(build())
"""


_Way = List[Tuple[int, str]]


def _chosen(source: str, way: _Way) -> Optional[List[Tuple[int, str]]]:
    sources = SourceTrees(time.time() + 9, lambda _: JobFile(source, 0.0))
    sites = tuple(LedgerSite("train.py", line, function) for line, function in way)
    decision = chosen_callee(sources, sites)
    if decision is None:
        return None
    return [(statement.line, statement.text) for statement in decision.statements]


@pytest.mark.parametrize(
    ("source", "way", "line", "text"),
    [
        (RETURNED, [(12, "<module>"), (9, "validate")], 2, "if quick.loss < slow.loss"),
        (GENERATED, [(18, "<module>"), (14, "step")], 7, "except StopIteration"),
        (CHOSEN, [(6, "<module>"), (3, "train")], 2, "first if clock() > 5 else second"),
    ],
    ids=["a function that returns either", "a generator behind a table", "a conditional expression"],
)
def test_what_chose_the_model_is_named(source: str, way: _Way, line: int, text: str) -> None:
    """The decision is found in another function than that of the forward pass, along the way to it."""
    assert _chosen(source, way) == [(line, text)]


def test_a_model_that_nothing_chooses_is_not_explained() -> None:
    """An argument that comes from a call without any choice has nothing to be told of."""
    assert _chosen(PLAIN, [(5, "<module>"), (2, "train")]) is None
