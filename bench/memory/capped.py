"""Runs a command in a control group with a limit that counts the page cache, and watches its memory.

    python3 bench/memory/capped.py 10G build/release/bin/sluice generate …

Needs the right to make memory control groups (v1 or v2).  As a module: run(command, limit) -> Result.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text):
    number, unit = re.fullmatch(r"([\d.]+)([KMG]?)(?:iB|B)?", text).groups()
    return int(float(number) * UNITS[unit])


@dataclasses.dataclass
class Result:
    code: int
    seconds: float
    peak_anonymous: int  # of the process, sampled
    peak_group: int      # what the group counted, page cache included
    oom_kills: int
    output: str
    errors: str


class Group:
    """A control group below the one this process is in, where there is one."""

    def __init__(self, limit):
        lines = dict(line.strip().split(":", 2)[1:] for line in open("/proc/self/cgroup"))
        root = pathlib.Path("/sys/fs/cgroup")
        self.v1 = "memory" in lines
        base = root / "memory" if self.v1 else root
        parent = base / lines["memory" if self.v1 else ""].lstrip("/")
        self.folder = (parent if parent.is_dir() else base) / f"capped-{os.getpid()}-{time.monotonic_ns()}"
        self.folder.mkdir()
        if self.v1:
            self._write("memory.limit_in_bytes", limit)
            for name in ("memory.memsw.limit_in_bytes",):
                if (self.folder / name).exists():
                    self._write(name, limit)
        else:
            self._write("memory.max", limit)
            self._write("memory.swap.max", 0)

    def _write(self, name, value):
        (self.folder / name).write_text(str(value))

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        name = "memory.max_usage_in_bytes" if self.v1 else "memory.peak"
        return int((self.folder / name).read_text())

    def oom_kills(self):
        text = (self.folder / ("memory.oom_control" if self.v1 else "memory.events")).read_text()
        found = re.search(r"oom_kill (\d+)", text)
        return int(found.group(1)) if found else 0

    def remove(self):
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def anonymous_of(pid):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def run(command, limit=None, environment=None, on_line=None):
    """on_line(line, process): told every line of stderr while the command runs."""
    group = Group(limit) if limit else None
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, **(environment or {})),
                               preexec_fn=group.enter if group else None)
    peak = 0
    stop = threading.Event()

    def watch():
        nonlocal peak
        while not stop.wait(0.01):
            peak = max(peak, anonymous_of(process.pid))

    errors = []

    def read_errors():
        for line in process.stderr:
            errors.append(line)
            if on_line:
                on_line(line, process)

    threads = [threading.Thread(target=watch), threading.Thread(target=read_errors)]
    for thread in threads:
        thread.start()
    output = process.stdout.read()
    process.wait()
    seconds = time.monotonic() - start
    stop.set()
    for thread in threads:
        thread.join()
    result = Result(process.returncode, seconds, peak, group.peak() if group else 0,
                    group.oom_kills() if group else 0, output, "".join(errors))
    if group:
        group.remove()
    return result


if __name__ == "__main__":
    result = run(sys.argv[2:], parse_size(sys.argv[1]))
    sys.stdout.write(result.output)
    sys.stderr.write(result.errors)
    print(f"exit {result.code}, {result.seconds:.1f} s, anonymous {result.peak_anonymous / 1e9:.2f} GB, "
          f"counted {result.peak_group / 1e9:.2f} GB, oom kills {result.oom_kills}")
    sys.exit(result.code)
