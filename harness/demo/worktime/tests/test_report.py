import unittest

from worktime.entry import parse
from worktime.report import table, totals


class TestReport(unittest.TestCase):
    def test_the_spans_of_a_project_are_added_up(self):
        sheet = [
            "2026-03-02 09:00-12:30 harbour",
            "2026-03-02 13:15-17:00 lighthouse",
            "2026-03-03 08:45-12:00 harbour",
        ]
        spent = totals(parse(line) for line in sheet)
        self.assertEqual(spent, {"harbour": 405, "lighthouse": 225})
        self.assertEqual(table(spent), "harbour       6:45\nlighthouse    3:45")
