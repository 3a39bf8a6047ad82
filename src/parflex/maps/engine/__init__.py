"""Lowest modes at many poses and designs without tables: one compiled step, which lanes take again and again."""
