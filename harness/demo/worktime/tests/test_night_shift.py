import unittest

from worktime.entry import minutes


class TestNightShift(unittest.TestCase):
    def test_it_ends_on_the_next_day(self):
        self.assertEqual(minutes("22:30-06:15"), 7 * 60 + 45)
