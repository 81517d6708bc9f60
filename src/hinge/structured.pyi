# Written by tools/stubs.py.

from hinge.models.structured import (
    TextFeatures as TextFeatures,
    graph_labelling as graph_labelling,
    graph_marginals as graph_marginals,
    word_shape as word_shape,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
