"""python3 -m worktime [FILE]"""

import fileinput

from worktime import entry, report

entries = [entry.parse(line) for line in fileinput.input() if line.strip()]
print(report.table(report.totals(entries)))
