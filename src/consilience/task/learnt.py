"""What a finished run learnt, apart from its data: the model, the likelihood, and what its inputs mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from consilience.models import Likelihood, Model
from consilience.task.columns import AnyColumn


class Learnt(NamedTuple):
    """A model whose parameters beliefs are about.

    names: the agents'. label_names: of what is predicted, where it is a label. columns: of tables, where inputs come
    from them. shape: of one input.
    """

    model: Model
    likelihood: Likelihood
    names: tuple[str, ...]
    label_names: tuple[str, ...]
    shape: tuple[int, ...]
    columns: Mapping[str, AnyColumn] | None = None
