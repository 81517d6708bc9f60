"""Pages in a real browser: what they say on the console, what they ask of the network, and a picture of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHROMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass
class Visit:
    """What a page did while it was open."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    tip: str = ""
    wide: bool = False  # something sticks out at the side


def visit(path: Path, picture: Path | None = None, width: int = 1200, height: int = 900, hover: str = "") -> Visit:
    """Open a file in headless Chromium; skips the test, with a reason, where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    chrome = next((found for name in CHROMES if (found := shutil.which(name))), None)
    if chrome is None:
        pytest.skip("no Chromium on this machine (apt install chromium)")
    seen = Visit()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chrome, args=["--no-sandbox", "--disable-gpu"])
        try:
            tab = browser.new_page(viewport={"width": width, "height": height})
            tab.on("console", lambda message: seen.console.append(message.text))
            tab.on("pageerror", lambda error: seen.console.append(str(error)))
            tab.on("request", lambda request: seen.requests.append(request.url))
            tab.goto(path.resolve().as_uri(), wait_until="load")
            if hover:
                tab.locator(hover).first.scroll_into_view_if_needed()
                tab.locator(hover).first.hover(force=True)
                seen.tip = tab.locator("#tip").inner_text()
            seen.wide = tab.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
            if picture is not None:
                tab.screenshot(path=str(picture), full_page=True)
        finally:
            browser.close()
    return seen
