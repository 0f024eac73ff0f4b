"""`load`: what a file holds, a posterior or a guarantee, by the kind that the file names."""

from __future__ import annotations

from functools import partial

from sateen.core.types import File
from sateen.files.container import read_container
from sateen.guarantee import archive as guarantees
from sateen.guarantee.guarantee import Guarantee
from sateen.learning import archive as posteriors
from sateen.learning.posterior import LearnedPosterior

__all__ = ["load"]


def load(file: File) -> LearnedPosterior | Guarantee:
    """The posterior or the guarantee that `save` wrote to a file; it predicts the same to the last bit.

    Nothing in the file is run. One that is damaged, foreign, or of a later version is refused, with what it is.
    """
    formats = {posteriors.KIND: posteriors.VERSION, guarantees.KIND: guarantees.VERSION}
    kind, _, content, arrays = read_container(file, formats)
    read = partial(posteriors.posterior_from_parts, where=str(file))
    if kind == guarantees.KIND:
        return guarantees.read_guarantee(content, arrays, read, str(file))
    return read(content, arrays)
