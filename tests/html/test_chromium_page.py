"""A real browser shows the page without an error, without a request, and with its script at work."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hostile_run import HOSTILE, diagnosis_of

from ddp_probe.showing.html import html_page
from ddp_probe.showing.html.page_words import WORDS

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)
# What a person would do: zoom by a button and by a key, open a quoted line. Each step, and what goes wrong, is left in the title.
_PROBE = """
const told = [];
window.requestAnimationFrame = (draw) => setTimeout(draw, 0);  // Nobody looks: a page that is only dumped gets no frames.
addEventListener("error", (event) => told.push("error " + event.message));
addEventListener("securitypolicyviolation", (event) => told.push("violation " + event.violatedDirective));
addEventListener("load", () => {
  const press = (name) => document.querySelector('[data-zoom="' + name + '"]').click();
  const soon = () => new Promise((done) => setTimeout(done, 200));
  (async () => {
    const shown = () => document.getElementById("zoomed").textContent;
    told.push("all " + shown());
    press("in"); await soon();
    told.push("in " + shown());
    document.querySelector(".lanes").dispatchEvent(new KeyboardEvent("keydown", { key: "0" })); await soon();
    told.push("again " + shown());
    document.querySelector('a[href^="#line-"]').click();
    told.push("dialog " + document.getElementById("line").open + " " + document.querySelector("#line pre").textContent.slice(0, 8));
    document.getElementById("line-close").click();
    told.push("wide " + (document.documentElement.scrollWidth > innerWidth));
    told.push("requests " + performance.getEntriesByType("resource").length);
    document.title = told.join(" | ");
  })();
});
"""


def _with_probe(text: str) -> str:
    """Return the page with one more script, which its policy lets in beside its own."""
    own = base64.b64encode(hashlib.sha256(_PROBE.encode("utf-8")).digest()).decode("ascii")
    lets_in = re.sub(r"(script-src )", r"\1&#39;sha256-%s&#39; " % own, text, count=1)
    return lets_in.replace("<style>", "<script>%s</script><style>" % _PROBE, 1)


@pytest.mark.skipif(_BROWSER is None, reason="No Chromium is on PATH: %s." % ", ".join(_NAMES))
def test_a_browser_shows_a_hostile_run(tmp_path: Path) -> None:
    """Zooming by a button and by a key, and a quoted line, work; nothing of the log runs, nothing is asked for, nothing is wider than the window."""
    opened = tmp_path / "page.html"
    opened.write_text(_with_probe(html_page.text(diagnosis_of(tmp_path / "run", HOSTILE))), encoding="utf-8")
    command = [
        str(_BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--user-data-dir=%s" % (tmp_path / "profile"),
        "--no-first-run",
    ]
    command += ["--enable-logging=stderr", "--v=0", "--window-size=500,900", "--virtual-time-budget=10000"]
    command += ["--dump-dom", opened.as_uri()]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found, done.stderr
    everything = WORDS["zoom_range"].split("{", 1)[0]
    steps = dict(step.partition(" ")[::2] for step in found[1].split(" | "))
    assert set(steps) == {"all", "in", "again", "dialog", "wide", "requests"}, steps
    assert steps["all"].startswith(everything)
    assert not steps["in"].startswith(everything)
    assert steps["again"] == steps["all"]
    assert (steps["dialog"], steps["wide"], steps["requests"]) == ('true {"rank":', "false", "0")
    assert "CONSOLE" not in done.stderr, done.stderr
