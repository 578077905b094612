"""If the probe comes late, whoever kept an original from before is named."""

import functools

from ddp_probe.traced.patching import PatchRegistry, Target


def test_who_kept_an_original_is_named(lib, registry, recorder):
    """A partial, a list and a closure made before the patch still hold the original, and are named under its target."""
    import probed_lib

    kept = [probed_lib.load]
    partial = functools.partial(probed_lib.load, 1)
    original = probed_lib.load

    def closure():
        return original

    registry.apply(Target("probed_lib", "load"), recorder())
    said = " ".join(registry.missed()["probed_lib.load"])
    assert "partial" in said
    assert "closure" in said
    assert "list" in said
    assert partial.func is kept[0] is closure()


def test_nobody_kept_one(lib, registry, recorder):
    """If only names held the original, they were replaced and nobody is named."""
    registry.apply(Target("probed_lib", "load"), recorder())
    assert registry.missed() == {}


def test_nothing_applied():
    """A registry without patches names nobody."""
    assert PatchRegistry().missed() == {}
