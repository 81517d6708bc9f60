"""Pages in a real browser: what they print on the console, what they request from the network, and a picture of them.

Chromium is driven over a pair of pipes (``--remote-debugging-pipe``, messages of JSON that end in a zero byte), which
needs nothing but the browser itself.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
    "--disable-dev-shm-usage", "--mute-audio",
)  # fmt: skip
PATIENCE = 120.0  # seconds for an answer, on a busy machine


@dataclass
class Visit:
    """What a page did while it was open."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    tip: str = ""
    wide: bool = False  # something sticks out at the side


class Chrome:
    """A headless browser with one page.

    It reads from its descriptor 3 and writes to 4; a shell puts the pipes there.
    """

    def __init__(self, program: str) -> None:
        ends = [*os.pipe(), *os.pipe()]
        to_read, self.to, self.back, to_write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
        for end in ends:
            os.close(end)
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", program, *FLAGS]
        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={self.folder.name}", "about:blank"], pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.count, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Chrome:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.folder.cleanup()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        while (answer := self._next()).get("id") != self.count:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, event: str) -> None:
        """Until an event comes, unless it did."""
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(end - time.monotonic(), 0))
            more = os.read(self.back, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("Chromium does not answer")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)


def browser() -> str | None:
    """Where Chromium is."""
    return next((found for name in CHROMES if (found := shutil.which(name))), None)


def visit(path: Path, picture: Path | None = None, width: int = 1200, height: int = 900, hover: str = "") -> Visit:
    """Open a file in headless Chromium; skips the test, with a reason, where there is none."""
    program = browser()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with Chrome(program) as chrome:
        chrome.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        chrome.ask("Page.navigate", url=path.resolve().as_uri())
        chrome.wait("Page.loadEventFired")
        seen = Visit()
        if hover:
            box = chrome.value(
                f"(()=>{{const e=document.querySelector({json.dumps(hover)});e.scrollIntoView({{block:'center',"
                "behavior:'instant'});const b=e.getBoundingClientRect();return [b.x+b.width/2,b.y+b.height/2]})()"
            )
            chrome.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
            seen.tip = chrome.value("document.getElementById('tip').innerText")
        seen.wide = chrome.value("document.documentElement.scrollWidth > window.innerWidth + 1")
        if picture is not None:
            shot = chrome.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={
                "x": 0, "y": 0, "width": width, "height": chrome.value("document.documentElement.scrollHeight"), "scale": 1,
            })  # fmt: skip
            picture.write_bytes(base64.b64decode(shot["data"]))
        for event in chrome.events:
            _note(event.get("method", ""), event.get("params", {}), seen)
    return seen


def _note(method: str, params: dict[str, Any], seen: Visit) -> None:
    if method == "Runtime.consoleAPICalled":
        seen.console.append(" ".join(str(a.get("value", a.get("description", ""))) for a in params["args"]))
    elif method == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        seen.console.append(details.get("exception", {}).get("description", details["text"]))
    elif method == "Log.entryAdded":
        seen.console.append(params["entry"]["text"])
    elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("data:"):
        seen.requests.append(params["request"]["url"])
