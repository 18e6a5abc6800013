"""What was spent on each project, as a table."""

from collections import Counter


def totals(entries):
    """Returns the minutes of each project, by its name."""
    spent = Counter()
    for entry in entries:
        spent[entry.project] += entry.minutes
    return dict(sorted(spent.items()))


def table(spent):
    """Returns one line for each project, with hours and minutes."""
    width = max(map(len, spent), default=0)
    return "\n".join(
        f"{project:<{width}}  {minutes // 60:>3}:{minutes % 60:02}"
        for project, minutes in spent.items()
    )
