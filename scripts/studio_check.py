"""Start the installed studio as a script would, ask it one question over HTTP, and end it with Ctrl-C."""

import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path


def main() -> None:
    began = time.perf_counter()
    command = [sys.executable, "-m", "ifonly", "studio", "--no-open"]
    studio = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert studio.stdout is not None
    base, _, token = studio.stdout.readline().strip().partition("?token=")
    print(f"ready after {time.perf_counter() - began:.1f} s at {base}")

    def get(path: str, data: bytes | None = None) -> str:
        request = urllib.request.Request(base + path, data, {"Authorization": f"token {token}"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read().decode()

    try:
        assert "Find a row" in get("")
        assert "htmx" in get("static/htmx.min.js")
        watching = get("ask", urllib.parse.urlencode({"row": 11}).encode())
        job = re.search(r"job=(\w+)", watching)
        assert job is not None, watching
        answer = get(f"events?job={job[1]}")
        assert "no smaller change would do" in answer, answer
        print(f"answered after {time.perf_counter() - began:.1f} s")
    finally:
        listed = subprocess.run(["pgrep", "-P", str(studio.pid)], capture_output=True, text=True, check=False).stdout
        studio.send_signal(signal.SIGINT)
        code = studio.wait(timeout=20)
    assert code == 0, f"Ctrl-C ended it with {code}"
    left = [pid for pid in listed.split() if Path(f"/proc/{pid}").exists()]
    assert not left, f"processes were left behind: {left}"


if __name__ == "__main__":
    main()
