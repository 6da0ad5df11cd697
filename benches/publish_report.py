"""What `scripts/bench publish` measured, as tables and a picture.

  publish_report.py FOLDER

Reads publish.tsv (a line for each run) and publish.remarks (kind and text) there, writes
publish.txt, publish.md and publish.svg beside them, and prints the first. Every number is
a median over the runs; a ratio is the median of those of the runs, each of mq against the
peer beside it in the same run, with its quartiles.
"""

import csv
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import publish_plot


class Runs:
    """All runs of a case, by bytes, window and peer, and in these by number."""

    def __init__(self, rows):
        self.by = defaultdict(dict)
        for row in rows:
            key = (int(row["bytes"]), int(row["window"]), row["peer"])
            messages, *took = (int(row[name]) for name in ("messages", "microseconds", "user", "system", "kib"))
            self.by[key][int(row["run"])] = (messages, took[0], took[1] + took[2], took[3])

    def places(self):
        return sorted({key[:2] for key in self.by})

    def peers(self, place):
        """mq first, and then by how fast they are."""
        names = [key[2] for key in self.by if key[:2] == place]
        return sorted(names, key=lambda name: (name != "mq", self.each(place, name, 1)))

    def median(self, place, peer, of):
        return statistics.median(map(of, self.by[(*place, peer)].values()))

    def each(self, place, peer, what):
        """Microseconds (what 1: of time, 2: of the processor) for a message."""
        return self.median(place, peer, lambda run: run[what] / max(run[0], 1))

    def mib(self, place, peer):
        return self.median(place, peer, lambda run: run[3]) / 1024

    def messages(self, place, peer):
        return int(self.median(place, peer, lambda run: run[0]))

    def ratios(self, place, peer, what, over=None):
        """mq's microseconds for a message over the peer's, of each run that has both."""
        ours, theirs = self.by.get((*place, "mq"), {}), self.by.get((*(over or place), peer), {})
        both = ours.keys() & theirs.keys()
        return [ours[run][what] / ours[run][0] / max(theirs[run][what] / theirs[run][0], 1e-9) for run in both]

    def best(self, size, peer):
        """The window at which a peer is fastest, as a place."""
        places = [place for place in self.places() if place[0] == size and (*place, peer) in self.by]
        return min(places, key=lambda place: self.each(place, peer, 1), default=None)


def spread(values):
    """A median with its quartiles."""
    if not values:
        return "-"
    middle = statistics.median(values)
    if len(values) < 3:
        return f"{middle:.2f}"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def one_table(runs):
    place = (5, 1)
    rows = [["one publish by", "runs", "ms", "mq's time / its", "processor, ms", "peak, MiB"]]
    for peer in runs.peers(place):
        versus = "" if peer == "mq" else spread(runs.ratios(place, peer, 1))
        time, cpu = (runs.each(place, peer, what) / 1000 for what in (1, 2))
        count = len(runs.by[(*place, peer)])
        rows.append([peer, str(count), f"{time:.1f}", versus, f"{cpu:.1f}", f"{runs.mib(place, peer):.1f}"])
    return rows


def bulk_table(runs):
    rows = [["bytes", "window", "by", "messages", "messages/s", "mq's rate / its", "processor, s", "us/message",
             "mq's / its", "peak, MiB"]]
    for place in runs.places():
        for peer in runs.peers(place):
            rate, cpu = (["", ""] if peer == "mq" else
                         [spread([1 / ratio for ratio in runs.ratios(place, peer, 1)]),
                          spread(runs.ratios(place, peer, 2))])
            count, used = runs.messages(place, peer), runs.each(place, peer, 2)
            rows.append([*map(str, place), peer, f"{count:,}", f"{1e6 / runs.each(place, peer, 1):,.0f}", rate,
                         f"{count * used / 1e6:.2f}", f"{used:.1f}", cpu, f"{runs.mib(place, peer):.1f}"])
    return rows


def goals_table(cases, remarks):
    rows = [["goal", "bound", "measured", ""]]

    def goal(what, bound, value, shown, is_met):
        if value is not None:
            rows.append([what, bound, shown.format(value), "met" if is_met(value) else "MISSED"])

    def median(values):
        return statistics.median(values) if values else None

    one = cases["one"]
    for peer, bound in (("amqp-publish", 1.2), ("rabbitmqadmin-v1", 0.1), ("pika", 0.1)):
        value = median(one.ratios((5, 1), peer, 1))
        goal(f"one publish, time over that of {peer}", f"at most {bound}", value, "{:.2f}", lambda v, b=bound: v <= b)
    bulk = cases["bulk"]
    for size in sorted({place[0] for place in bulk.places()}):
        ours, theirs = bulk.best(size, "mq"), bulk.best(size, "c")
        if ours is None or theirs is None:
            continue
        windows = f"{size} bytes, windows {ours[1]} and {theirs[1]}"
        rate = median([1 / ratio for ratio in bulk.ratios(ours, "c", 1, theirs)])
        goal(f"best rate over that of the loop in C ({windows})", "at least 1.0", rate, "{:.2f}", lambda v: v >= 1)
        cpu = median(bulk.ratios(ours, "c", 2, theirs))
        goal(f"processor over that of the loop in C ({windows})", "at most 2", cpu, "{:.2f}", lambda v: v <= 2)
    start = cases["start"]
    if (0, 0, "mq") in start.by:
        goal("mq --help", "under 5 ms", start.each((0, 0), "mq", 1) / 1000, "{:.1f} ms", lambda v: v < 5)
        floor = start.each((0, 0), "true", 1) / 1000
        rows.append(["/bin/true, for comparison", "", f"{floor:.1f} ms", ""])
    sizes = [int(text) / 1e6 for kind, text in remarks if kind == "binary"]
    goal("binary", "under 20 MB", median(sizes), "{:.1f} MB", lambda v: v < 20)
    for case, name in (("memory-repeat", "--repeat"), ("memory-lines", "--lines")):
        for place in cases[case].places():
            count = cases[case].messages(place, "mq")
            mib = cases[case].mib(place, "mq")
            goal(f"peak memory, {name} of {count:,}, window {place[1]}", "under 30 MB", mib * 1.048576, "{:.1f} MB",
                 lambda v: v < 30)
    peaks = [bulk.mib(place, "mq") * 1.048576 for place in bulk.places() if (*place, "mq") in bulk.by]
    goal("peak memory, the most of the bulk above", "under 30 MB", max(peaks, default=None), "{:.1f} MB",
         lambda v: v < 30)
    return rows


def as_text(rows):
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def as_markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def main(folder):
    with (folder / "publish.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    lines = (folder / "publish.remarks").read_text(encoding="utf-8").splitlines()
    remarks = [tuple(line.split("\t", 1)) for line in lines]
    cases = defaultdict(lambda: Runs([]))
    for case in {row["case"] for row in rows}:
        cases[case] = Runs([row for row in rows if row["case"] == case])
    tables = []
    if cases["one"].by:
        tables.append(("One message, as a whole process", one_table(cases["one"])))
    if cases["bulk"].by:
        tables.append(("Many confirmed messages, as a whole process", bulk_table(cases["bulk"])))
    tables.append(("Goals", goals_table(cases, remarks)))
    about = [text for kind, text in remarks if kind == "about"]
    notes = [f"with {text}" for kind, text in remarks if kind == "peer"]
    notes += [f"left out: {text}" for kind, text in remarks if kind == "left_out"]
    for name, table, sign in (("publish.txt", as_text, "{}"), ("publish.md", as_markdown, "## {}")):
        parts = ["\n".join(about) if name.endswith("txt") else "  \n".join(about)]
        parts += [f"{sign.format(title)}\n\n{table(rows)}" for title, rows in tables]
        parts.append("\n".join(f"- {note}" for note in notes))
        (folder / name).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (folder / "publish.svg").write_text(publish_plot.svg(cases, about), encoding="utf-8")
    print((folder / "publish.txt").read_text(encoding="utf-8"), end="")
    print(f"\nwritten: publish.txt, publish.md, publish.svg and publish.tsv in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
