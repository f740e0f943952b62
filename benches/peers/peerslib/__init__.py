"""Measures pgcrawl beside other crawlers; see ../README.md."""
