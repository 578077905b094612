"""Which variables are read."""

import os

from ddp_probe.shared import accelerators
from ddp_probe.traced.opening import NAMED, environment


def test_only_the_named_list():
    """A variable that is not on the list is not read."""
    found = environment({"RANK": "1", "NCCL_DEBUG": "INFO", "HOME": "/home/somebody", "MY_SETTING": "x", "LD_PRELOAD": "a.so"})
    assert found == {"RANK": "1", "NCCL_DEBUG": "INFO", "LD_PRELOAD": "a.so"}


def test_secret_names_are_left_out():
    """A listed beginning does not let a secret through."""
    assert environment({"NCCL_AUTH_TOKEN": "planted", "TORCH_API_KEY": "planted", "ENFLAME_PASSWORD": "planted"}) == {}


def test_values_are_masked_and_bounded():
    """Credentials in a value are masked; a long value is cut."""
    found = environment({"MASTER_ADDR": "tcp://u:planted@h", "PYTHONPATH": "/x " * 5000})
    assert found["MASTER_ADDR"] == "tcp://***@h"
    assert len(found["PYTHONPATH"]) == 1000


def test_every_visible_variable_is_on_the_list():
    """Each accelerator's visible-device variables are read."""
    names = accelerators.visible_variables()
    assert set(environment(dict.fromkeys(names, "0"))) == set(names)


def test_every_group_says_what_it_is_for():
    """Each group of the list has a sentence and something in it."""
    for doc, names, beginnings in NAMED:
        assert doc.endswith(".")
        assert names or beginnings


def test_default_is_the_process_environment(monkeypatch):
    """Without an argument the process's own environment is read."""
    monkeypatch.setenv("LOCAL_RANK", "7")
    assert environment()["LOCAL_RANK"] == os.environ["LOCAL_RANK"]
