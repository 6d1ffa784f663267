"""What the benchmark scripts share: the machine in words, how busy it is, sections of a report."""
import datetime
import os
import pathlib
import platform
import re
import subprocess
import time

INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "asimd", "sve")


def first_line(*command):
    """The first line that a command prints, or None if it cannot be run."""
    try:
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        return lines[0] if lines else None
    except OSError:
        return None


def machine(compilers=("g++", "clang++-19")):
    """The processor, what it can do, the system, compilers and the date, as lines of Markdown."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()

    def value(name, default=""):
        found = re.search(rf"^{name}\s*: (.*)$", cpuinfo, re.M)
        return found[1] if found else default

    model, flags = value("model name", "unknown processor"), value("(?:flags|Features)").split()
    detail = f" (family {value('cpu family')}, model {value('model')})" if value("model") else ""
    lines = [
        f"- processor: {model}{detail}, {len(os.sched_getaffinity(0))} cores; "
        + ", ".join(f for f in INSTRUCTIONS if f in flags),
        f"- system: {platform.system()} {platform.release()}, Python {platform.python_version()}",
        f"- date: {datetime.date.today().isoformat()}",
    ]
    lines += [f"- compiler: {version}" for c in compilers if (version := first_line(c, "--version"))]
    return lines


def processor_seconds():
    """(busy, stolen) seconds of all processors since the machine started."""
    ticks = [int(t) for t in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    hz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hz, steal / hz


def wait_until_quiet(patience, limit=0.1):
    """Waits until other processes use less than `limit` processors for two seconds, for `patience`
    seconds at most. Returns the processors that they used in the last look."""
    end = time.monotonic() + patience
    while True:
        busy = processor_seconds()[0]
        start = time.monotonic()
        time.sleep(2)
        load = (processor_seconds()[0] - busy) / (time.monotonic() - start)
        if load < limit or time.monotonic() > end:
            return load


def table(header, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |",
             "| --- |" + " ---: |" * (len(header) - 1)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def replace_section(path, name, lines):
    """Puts `lines` between the comments `<!-- NAME -->` and `<!-- /NAME -->` of a Markdown file; they
    are appended if it lacks them."""
    path = pathlib.Path(path)
    text = path.read_text() if path.exists() else ""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = "\n".join([begin, *lines, end])
    if begin in text and end in text:
        head, tail = text.split(begin, 1)[0], text.split(end, 1)[1]
        text = head + section + tail
    else:
        text = text + ("\n" if text else "") + section + "\n"
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text)
    temporary.replace(path)
