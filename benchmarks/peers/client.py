"""Our side of the wire: start a peer's worker, ask it, and end it when it hangs."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import IO, Any

__all__ = ["Died", "Hung", "Worker"]


class Hung(Exception):
    """The worker did not answer in time and was ended."""


class Died(Exception):
    """The worker ended by itself."""


class Worker:
    """One process that speaks JSON lines."""

    def __init__(self, python: Path, script: Path, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [str(python), str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        assert self.process.stdout is not None
        threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True).start()

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    @property
    def alive(self) -> bool:
        """Whether the process can still be asked."""
        return self.process.poll() is None

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the answer to a message, or end the worker when there is none after so many seconds."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise Died("The worker had ended.") from error
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise Hung(f"No answer in {seconds:.0f} s.") from None
        if line is None:
            raise Died(f"The worker ended with code {self.process.wait()}.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
