"""Digits that are turned."""
