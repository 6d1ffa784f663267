#!/usr/bin/env python3
"""Draws the lines that peers.py has written as bars: milliseconds per step, one panel per workload.

usage: draw.py LINES.jsonl [THREADS [median|minimum]] > performance.svg

The minimum is the one to compare if the machine was busy.
"""
import sys
from xml.sax.saxutils import escape

import peers

COLOURS = {"cella": "#b5482e"}
OTHER = "#8a94a0"
WIDTH, LABEL, BAR, GAP, PANEL = 760, 130, 16, 5, 34


def draw(lines, threads, figure):
    """An SVG image of the median or the minimum. Bars of one panel share a scale."""
    panels = [(workload, sorted(frameworks.items(), key=lambda item: item[1][figure]))
              for (workload, t), frameworks in peers.combined(lines).items() if t == threads]
    if not panels:
        sys.exit(f"there are no measurements with {threads} threads")
    out, y = [], 26
    title = f"Milliseconds per step, {threads} thread{'s' * (threads > 1)} ({figure}; shorter is better)"
    out.append(f'<text x="8" y="18" font-weight="bold">{escape(title)}</text>')
    for workload, bars in panels:
        y += PANEL - 12
        out.append(f'<text x="8" y="{y}" font-weight="bold">{escape(workload)}</text>')
        y += 8
        longest = max(f[figure] for _, f in bars)
        for name, f in bars:
            length = max(1.0, f[figure] / longest * (WIDTH - LABEL - 90))
            middle = y + BAR - 4
            out.append(f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>')
            out.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" '
                       f'fill="{COLOURS.get(name, OTHER)}"/>')
            out.append(f'<text x="{LABEL + length + 6:.1f}" y="{middle}">{f[figure]:.3g}</text>')
            y += BAR + GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" '
        f'viewBox="0 0 {WIDTH} {y + 10}" font-family="sans-serif" font-size="12" fill="#20262c">',
        f'<rect width="{WIDTH}" height="{y + 10}" fill="#ffffff"/>', *out, "</svg>"])


def main():
    arguments = sys.argv[1:] + ["1", "median"][len(sys.argv[1:]) - 1:]
    if len(arguments) != 3 or not arguments[1].isdigit() or arguments[2] not in ("median", "minimum"):
        sys.exit(__doc__)
    print(draw(peers.load(arguments[0]), int(arguments[1]), arguments[2]))


if __name__ == "__main__":
    main()
