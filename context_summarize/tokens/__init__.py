"""Counts tokens of texts, images and rows, and corrects the counts by the provider's figures."""
