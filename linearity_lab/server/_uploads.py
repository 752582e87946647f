"""A bound on the uploaded files that Streamlit holds in memory."""

import asyncio
from typing import Any

from streamlit import runtime


async def bound_uploads(max_bytes: int) -> None:
    """Every second, shrink Streamlit's uploaded files to ``max_bytes`` in total."""
    while True:
        await asyncio.sleep(1.0)
        if runtime.exists():
            shrink(runtime.get_instance().uploaded_file_mgr, max_bytes)


def shrink(uploads: Any, max_bytes: int) -> None:
    """Remove the oldest file of the session that holds most, until the rest fits.

    Only bytes that have arrived count; the size that a request claims does not.
    """
    held = {session: list(files.values()) for session, files in list(uploads.file_storage.items())}
    sizes = {session: sum(len(file.data) for file in files) for session, files in held.items()}
    while sum(sizes.values()) > max_bytes:
        heaviest = max(sizes, key=lambda session: sizes[session])
        oldest = held[heaviest].pop(0)
        uploads.remove_file(heaviest, oldest.file_id)
        sizes[heaviest] -= len(oldest.data)
