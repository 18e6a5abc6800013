import unittest
from datetime import date

from worktime.entry import Entry, minutes, parse


class TestEntry(unittest.TestCase):
    def test_a_line_is_a_day_a_span_and_a_project(self):
        expected = Entry(date(2026, 3, 2), 210, "harbour")
        self.assertEqual(parse("2026-03-02 09:00-12:30 harbour\n"), expected)

    def test_other_lines_are_refused(self):
        with self.assertRaisesRegex(ValueError, "is not DAY FROM-TO PROJECT"):
            parse("lunch")

    def test_a_span_that_ends_when_it_begins_is_refused(self):
        with self.assertRaisesRegex(ValueError, "ends when it begins"):
            minutes("09:00-09:00")
