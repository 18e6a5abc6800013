"""One line of a time sheet: a day, a span of time, and what it was spent on."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Entry:
    day: date
    minutes: int
    project: str


def parse(line):
    """Reads a line such as `2026-03-02 09:00-12:30 harbour`."""
    try:
        day, span, project = line.split(maxsplit=2)
    except ValueError:
        raise ValueError(f"{line!r} is not DAY FROM-TO PROJECT") from None
    return Entry(date.fromisoformat(day), minutes(span), project.strip())


def minutes(span):
    """Returns the length of a span such as `09:00-12:30`, in minutes."""
    begin, end = (clock(time) for time in span.split("-", 1))
    if begin == end:
        raise ValueError(f"{span!r} ends when it begins")
    return end - begin


def clock(time):
    """Returns a time of day as minutes since midnight."""
    hours, rest = time.split(":")
    return int(hours) * 60 + int(rest)
