"""Counting: text, images, rows, and calibration by the provider's figures."""
