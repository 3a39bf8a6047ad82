"""Pages that notebooks show."""


def page_of(record: object) -> str | None:
    """HTML of a record."""
    return None
