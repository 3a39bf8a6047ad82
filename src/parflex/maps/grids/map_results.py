"""Cells of a map as results of a campaign: kept in its file, and chunk by chunk in the journal beside it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import ParflexError
from parflex.maps.grids.map_files import MapStore, numbered
from parflex.maps.rows.frequency_rows import FrequencyRows
from parflex.maps.rows.row_answers import RowAnswers


class MapResults:
    """A store of cells with its file; what was counted in chunks of this call goes to `counting`."""

    def __init__(
        self, store: MapStore, path: Path | None, settings: Mapping[str, Any], counting: FrequencyRows | None
    ) -> None:
        self.store, self.path, self.settings, self.counting = store, path, settings, counting
        self.name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self.refused: ParflexError | None = None
        self.fallbacks = 0  # cells that were not solved together with others
        self.before = 0  # cells that were known when this call began
        self.rests = np.zeros(len(store.status), dtype=bool)  # cells about an equilibrium that was not asked for

    def put(self, chunk: slice, part: RowAnswers) -> None:
        """Take over what was found in a chunk."""
        self.store.put(chunk, part.values, part.status, part.reasons)
        self.refused = self.refused or part.refused
        self.fallbacks += part.fallbacks
        if len(part.rests):
            self.rests[chunk] = part.rests
        if self.counting is not None:
            self.counting.note(part)

    def save(self) -> None:
        """Write all of it."""
        if self.path is not None:
            self.store.save(self.path, self.settings)

    def packed(self, chunk: slice, part: RowAnswers) -> bytes:
        """A chunk for the journal."""
        texts, numbers = numbered(part.reasons)
        said = [chunk.start, chunk.stop, list(part.values), texts, part.fallbacks, part.balanced]
        content = io.BytesIO()
        arrays = {f"value{k}": own for k, own in enumerate(part.values.values())} | {"reason": numbers}
        np.savez(content, said=np.array(json.dumps(said)), status=part.status, **arrays)  # type: ignore[arg-type]
        return content.getvalue()

    def unpacked(self, data: bytes) -> tuple[slice, RowAnswers]:
        """What `packed` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            start, stop, names, texts, fallbacks, balanced = json.loads(str(stored["said"]))
            reasons = [texts[k] for k in stored["reason"].tolist()]
            values = {name: stored[f"value{k}"] for k, name in enumerate(names)}
            return slice(start, stop), RowAnswers(values, stored["status"], reasons, fallbacks, balanced)
