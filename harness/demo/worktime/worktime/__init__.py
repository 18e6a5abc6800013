"""Adds up what a time sheet says was spent on each project."""
