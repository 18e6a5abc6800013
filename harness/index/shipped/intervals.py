"""Intervals of numbers."""


def merge(intervals):
    """Joins intervals that overlap or touch into larger ones."""
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def gaps(intervals):
    """Returns the free gaps that lie between intervals."""
    found = []
    for (_, before), (begin, _) in zip(intervals, intervals[1:]):
        if before < begin:
            found.append((before, begin))
    return found


def covers(intervals, number):
    """Tells whether one of the intervals covers a number."""
    return any(begin <= number < end for begin, end in intervals)
