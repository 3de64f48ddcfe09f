"""Drives a headless Chromium over the DevTools protocol through a pipe: pages, clicks, keys, what the console says."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0
"""Seconds for one answer; a guard against hangs, far above what any takes."""

# Chromium reads commands from descriptor 3 and writes answers to 4, whatever numbers the pipes have here.
_LAUNCH = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

_KEYS = {
    "Enter": ("\r", 13),
    " ": (" ", 32),
    "Tab": ("", 9),
    "ArrowDown": ("", 40),
    "ArrowRight": ("", 39),
    "ArrowLeft": ("", 37),
}


def find_chromium() -> str | None:
    """Path of an installed Chromium or Chrome, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One headless browser with a profile of its own, as a context manager."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        command_in, self._commands = os.pipe()
        self._answers, answer_out = os.pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}"]
        flags += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has no user namespace to sandbox in
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(command_in), str(answer_out), program, *flags],
            pass_fds=(command_in, answer_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_in)
        os.close(answer_out)
        self._buffer = b""
        self._last_id = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.send("Browser.close")
        except ConnectionError:
            pass  # it is gone already
        finally:
            os.close(self._commands)
            os.close(self._answers)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._profile.cleanup()

    def send(self, method: str, session: str | None = None, **params: Any) -> Any:
        """The answer to one command; events that come before it are kept in `events`."""
        self._last_id += 1
        command = {"id": self._last_id, "method": method, "params": params}
        self._write(json.dumps(command | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") != self._last_id:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            else:
                return message["result"]

    def wait_for(self, event: str, session: str) -> None:
        """Until an event of this name has come."""
        while not any(each.get("method") == event and each.get("sessionId") == session for each in self.events):
            self.events.append(self._read())

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._commands, data) :]

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"Chromium has not answered within {PATIENCE:.0f} s")
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise ConnectionError("Chromium has ended")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        """A new tab with a local file, loaded to its end."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.send("Emulation.setEmulatedMedia", features=[scheme])
        page.send("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired", session)
        return page


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def send(self, method: str, **params: Any) -> Any:
        """The answer to one command of this tab."""
        return self._browser.send(method, self._session, **params)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON gives it.

        Raises:
            RuntimeError: it throws.
        """
        told = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first element that matches."""
        self._point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **self._at)

    def hover(self, selector: str) -> None:
        """Move the mouse over the first element that matches."""
        self._point(selector)

    def _point(self, selector: str) -> None:
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({found}.getBoundingClientRect())"
        )
        self._at = {"x": box[0], "y": box[1]}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **self._at)

    def press(self, key: str) -> None:
        """One key, to whatever has the focus."""
        text, code = _KEYS[key]
        known = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **known, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def problems(self) -> list[str]:
        """What went wrong in the tab so far: exceptions, errors and warnings of the console, refusals of the policy."""
        self.evaluate("0")  # whatever was said before is here once this is answered
        found = []
        for event in self._events():
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Page.javascriptDialogOpening":
                found.append(f"dialog: {params['message']}")
        return found

    def requested(self) -> list[str]:
        """Addresses that the tab has asked for, `data:` aside."""
        sent = [event for event in self._events() if event["method"] == "Network.requestWillBeSent"]
        return [url for event in sent if not (url := event["params"]["request"]["url"]).startswith("data:")]

    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of the page, or of what the window shows."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
