"""A page in a headless Chromium: what a script does there, and what comes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--enable-logging=stderr",
    "--dump-dom",
    "--blink-settings=preferredColorScheme=0",
]
DRIVER = """
<script>addEventListener('load', async () => {
  const tick = () => new Promise((done) => setTimeout(done, 200));
  const type = (field, text) => { field.value = text; field.dispatchEvent(new Event('input')); };
  const choose = (field, to) => { field.value = to; field.dispatchEvent(new Event('change')); };
  await tick();
  const found = {};
  %s
  found.requests = performance.getEntriesByType('resource').length;
  const result = document.createElement('pre');
  result.id = 'result';
  result.textContent = JSON.stringify(found);
  document.body.append(result);
});</script>
"""


def driven(path: Path, script: str) -> dict[str, Any]:
    """Open a page from disk, in the dark, and do what a reader does.

    Args:
        path: of the page.
        script: statements that put what they see into `found`; `tick`, `type` and `choose` help.

    Returns:
        what they saw, and the number of `requests`.
    """
    page = path.read_text().replace("</body>", DRIVER % script + "</body>")
    copy = path.with_name(f"driven-{path.name}")
    copy.write_text(page)
    done = subprocess.run(
        [str(BROWSER), *FLAGS, f"--user-data-dir={path.parent / 'profile'}", copy.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    result = re.search('<pre id="result">(.*?)</pre>', done.stdout)
    assert result is not None
    found: dict[str, Any] = json.loads(result[1])
    return found
