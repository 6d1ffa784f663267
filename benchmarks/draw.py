#!/usr/bin/env python3
"""Draws the lines that peers.py has written as bars: milliseconds per step, one panel per workload.

usage: draw.py LINES.jsonl [THREADS] > performance.svg
"""
import json
import sys
from xml.sax.saxutils import escape

import peers

COLOURS = {"cella": "#b5482e"}
OTHER = "#8a94a0"
WIDTH, LABEL, BAR, GAP, PANEL = 760, 130, 16, 5, 34


def draw(lines, threads):
    """An SVG image. Bars of one panel share a scale; the label gives the median."""
    panels = [(workload, sorted(frameworks.items(), key=lambda item: item[1]["median"]))
              for (workload, t), frameworks in peers.combined(lines).items() if t == threads]
    if not panels:
        sys.exit(f"there are no measurements with {threads} threads")
    out, y = [], 26
    title = f"Milliseconds per step, {threads} thread{'s' * (threads > 1)} (median; shorter is better)"
    out.append(f'<text x="8" y="18" font-weight="bold">{escape(title)}</text>')
    for workload, bars in panels:
        y += PANEL - 12
        out.append(f'<text x="8" y="{y}" font-weight="bold">{escape(workload)}</text>')
        y += 8
        longest = max(f["median"] for _, f in bars)
        for name, f in bars:
            length = max(1.0, f["median"] / longest * (WIDTH - LABEL - 90))
            middle = y + BAR - 4
            out.append(f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>')
            out.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" '
                       f'fill="{COLOURS.get(name, OTHER)}"/>')
            out.append(f'<text x="{LABEL + length + 6:.1f}" y="{middle}">{f["median"]:.3g}</text>')
            y += BAR + GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" '
        f'viewBox="0 0 {WIDTH} {y + 10}" font-family="sans-serif" font-size="12" fill="#20262c">',
        f'<rect width="{WIDTH}" height="{y + 10}" fill="#ffffff"/>', *out, "</svg>"])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        print(draw([json.loads(line) for line in file], int(sys.argv[2]) if len(sys.argv) == 3 else 1))
