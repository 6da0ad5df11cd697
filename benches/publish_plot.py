"""The picture of `scripts/bench publish`: publish_report.py calls it."""

import math
from html import escape

# Told apart by those who see few colours too (Okabe and Ito).
COLOURS = {
    "mq": "#d55e00",
    "c": "#000000",
    "amqp-publish": "#000000",
    "lapin": "#0072b2",
    "lapin-one-thread": "#56b4e9",
    "pika": "#009e73",
    "aio-pika": "#cc79a7",
    "amqplib": "#e69f00",
    "amqp091-go": "#7f7f7f",
    "rabbitmqadmin-v1": "#7f7f7f",
    "rabbitmqadmin-v2": "#b0b0b0",
}
WIDTH, LEFT, GAP, PLOT_WIDTH, PLOT_HEIGHT = 960, 70, 90, 370, 220


def text(x, y, words, anchor="start", weight="normal", fill="#222222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#dddddd", width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def step_for(most):
    """A round distance that cuts a length into four to eight."""
    power = 10 ** math.floor(math.log10(most / 4))
    return next(power * times for times in (1, 2, 5, 10) if most / (power * times) <= 8)


def bars(title, values, top):
    """One message: a bar for each peer; gives its picture and height."""
    most = max(values.values())
    parts, y = [text(LEFT, top, title, weight="bold")], top + 14
    for peer, value in values.items():
        length = 620 * value / most
        parts.append(text(LEFT + 110, y + 13, peer, "end"))
        parts.append(f'<rect x="{LEFT + 118}" y="{y}" width="{length:.1f}" height="18" fill="{COLOURS.get(peer, "#7f7f7f")}"/>')
        parts.append(text(LEFT + 124 + length, y + 13, f"{value:.1f} ms"))
        y += 25
    return parts, y - top


class Axes:
    """A field whose windows stand side by side, as words do."""

    def __init__(self, x, y, windows, values, logarithmic):
        self.x, self.y, self.windows, self.logarithmic = x, y, windows, logarithmic
        low, high = min(values), max(values)
        if logarithmic:
            # A half of a power is kept clear at either side.
            self.low, self.high = math.log10(low) - 0.15, math.log10(high) + 0.15
            powers = range(math.floor(self.low), math.ceil(self.high) + 1)
            ticks = [times * 10.0**power for power in powers for times in (1, 2, 5)]
            self.ticks = [tick for tick in ticks if self.low <= math.log10(tick) <= self.high]
        else:
            step = step_for(high)
            self.low, self.high = 0.0, step * math.ceil(high * 1.02 / step)
            self.ticks = [step * count for count in range(round(self.high / step) + 1)]

    def across(self, window):
        return self.x + PLOT_WIDTH * (self.windows.index(window) + 0.5) / len(self.windows)

    def up(self, value):
        value = math.log10(value) if self.logarithmic else value
        return self.y + PLOT_HEIGHT * (1 - (value - self.low) / (self.high - self.low))

    def frame(self, title):
        parts = [text(self.x, self.y - 14, title, weight="bold")]
        for tick in self.ticks:
            parts.append(line(self.x, self.up(tick), self.x + PLOT_WIDTH, self.up(tick)))
            parts.append(text(self.x - 8, self.up(tick) + 4, f"{tick:,.10g}", "end"))
        for window in self.windows:
            parts.append(text(self.across(window), self.y + PLOT_HEIGHT + 18, f"{window:,}", "middle"))
        parts.append(text(self.x + PLOT_WIDTH / 2, self.y + PLOT_HEIGHT + 36, "window (messages without a confirm)", "middle"))
        return parts


def curves(title, points, x, y, logarithmic):
    """`points`: by peer, values by window."""
    windows = sorted({window for values in points.values() for window in values})
    axes = Axes(x, y, windows, [value for values in points.values() for value in values.values()], logarithmic)
    parts = axes.frame(title)
    # mq is drawn last: above the others.
    for peer in sorted(points, key=lambda peer: peer == "mq"):
        colour, places = COLOURS.get(peer, "#7f7f7f"), sorted(points[peer].items())
        path = " ".join(f"{axes.across(window):.1f},{axes.up(value):.1f}" for window, value in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{3 if peer == "mq" else 1.8}"/>')
        for window, value in places:
            parts.append(f'<circle cx="{axes.across(window):.1f}" cy="{axes.up(value):.1f}" r="3.5" fill="{colour}"/>')
    return parts


def legend(peers, y):
    parts, x = [], LEFT
    for peer in peers:
        parts.append(line(x, y - 4, x + 22, y - 4, COLOURS.get(peer, "#7f7f7f"), 3))
        parts.append(text(x + 28, y, {"c": "loop in C"}.get(peer, peer)))
        x += 50 + 8 * len({"c": "loop in C"}.get(peer, peer))
    return parts


def svg(cases, about):
    """The whole picture; what was not measured is not in it."""
    parts, y = [text(LEFT, 30, "mq publish against its peers", weight="bold")], 50
    for words in about:
        parts.append(text(LEFT, y, words, fill="#666666"))
        y += 18
    one, bulk = cases["one"], cases["bulk"]
    if one.by:
        values = {peer: one.each((5, 1), peer, 1) / 1000 for peer in one.peers((5, 1))}
        drawn, height = bars("One message, as a whole process: milliseconds (less is better)", values, y + 22)
        parts += drawn
        y += height + 40
    if bulk.by:
        peers = sorted({key[2] for key in bulk.by}, key=lambda peer: (peer != "mq", list(COLOURS).index(peer)))
        y += 20
        parts += legend(peers, y)
        y += 45
        for what, unit in ((1, "messages/s (more is better)"), (2, "processor µs/message (less is better)")):
            for at, size in enumerate(sorted({place[0] for place in bulk.places()})):
                points = {peer: {} for peer in peers}
                for bytes_, window, peer in bulk.by:
                    if bytes_ == size:
                        each = bulk.each((bytes_, window), peer, what)
                        points[peer][window] = 1e6 / each if what == 1 else max(each, 0.1)
                points = {peer: values for peer, values in points.items() if values}
                parts += curves(f"{size:,} bytes: {unit}", points, LEFT + at * (PLOT_WIDTH + GAP), y, what == 2)
            y += PLOT_HEIGHT + 85
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:.0f}" viewBox="0 0 {WIDTH} {y:.0f}" font-family="sans-serif" font-size="13">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y:.0f}" fill="white"/>', *parts, "</svg>"]) + "\n"
