"""Strange models under real torch: an event for each move and each wrap, never an exception, and nothing that the job could notice."""

import json

import pytest


@pytest.fixture(scope="module")
def both(alone, tmp_path_factory):
    """What the program told without and with the probe, and the run."""
    folder = tmp_path_factory.mktemp("models")
    told = {}
    for probed in (False, True):
        run = alone("models.py", str(folder / "told.json"), probed=probed)
        assert run.done.returncode == 0, run.done.stderr[-4000:]
        told[probed] = json.loads((folder / "told.json").read_text())
    return told[False], told[True], run


def test_every_model_fares_as_without_the_probe(both):
    """Each move and each wrap returns or raises as it does without the probe."""
    plain, probed, _ = both
    assert probed == plain
    assert [plain["shared"][0], plain["shared"][2]] == ["Sequential", "DistributedDataParallel"]


def test_every_model_has_its_events(both):
    """Each move and each wrap has a begin event and an end or an error; nothing of the probe has failed."""
    plain, _, run = both
    begins = run.events("rank00000", "ddp.init", "begin")
    assert len(begins) == 2 * (len(plain) - 1) - 1 + len(plain["no module"])
    ended = run.events("rank00000", "ddp.init", "end") + run.events("rank00000", "ddp.init", "error")
    assert sorted(event["span"] for event in ended) == sorted(event["span"] for event in begins)
    assert len(run.events("rank00000", "module.move", "begin")) >= len(plain) - 2  # A scripted module's to() is not Module.to in every torch.
    assert run.events("rank00000", "probe.fault") == []
    assert "lost" not in run.one("rank00000", "process.end", "point")


def test_what_cannot_be_read_is_counted(both):
    """Lazy, meta and shared parameters are counted as such, one whose class raises is read, and 100 000 parameters are all there."""
    plain, _, run = both
    by_name = dict(zip(plain, _first_of_each(run)))
    assert by_name["none"]["placement"].get("parameters", 0) == 0
    assert by_name["lazy"]["placement"]["lazy"] == 2
    assert by_name["meta"]["placement"]["meta"] == 2
    assert set(by_name["mixed"]["placement"]["devices"]) == {"cpu", "meta"}
    assert by_name["shared"]["placement"]["parameters"] == 3
    assert by_name["shared"]["placement"]["shared"] >= 1
    assert by_name["raises"]["placement"]["devices"]["cpu"]["count"] == 2
    assert by_name["hostile"]["placement"]["parameters"] == 2
    assert by_name["many"]["placement"]["parameters"] == 100000


def _first_of_each(run):
    """Return the wrap with device_ids of each model."""
    return [event for event in run.events("rank00000", "ddp.init", "begin") if "device_ids" in event]
