"""Campaigns: work in chunks by many workers, kept on disk as it comes, taken up again where it stopped."""
