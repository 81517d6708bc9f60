"""Images as vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import DTYPE, Constraints, Estimator, count


class ImageVectors(TransformerMixin, Estimator):
    """Pixels, row by row, as one vector per image: n × h × w (× c) → R^{h·w·c}.

    Parameters
    ----------
    pool : int
        Average blocks of pool × pool pixels: fewer, smoother features.
    scale : bool
        Divide whole numbers by the largest value of their type (255 for bytes), so that pixels lie in [0, 1].
    dtype : type
        Of the result.

    Attributes
    ----------
    shape_ : tuple
        h × w (× c) of the training images; others are refused.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> images = np.array([[[0, 255], [255, 255]]], dtype=np.uint8)
    >>> hg.ImageVectors().fit_transform(images).tolist()
    [[0.0, 1.0, 1.0, 1.0]]
    >>> hg.ImageVectors(pool=2).fit_transform(images).tolist()
    [[0.75]]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "pool": [count()],
        "scale": ["boolean"],
        "dtype": DTYPE,
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.two_d_array": False, "input_tags.three_d_array": True}

    def __init__(self, *, pool: int = 1, scale: bool = True, dtype: Any = np.float64) -> None:
        self.pool = pool
        self.scale = scale
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> ImageVectors:
        """Keep the shape."""
        self.shape_ = tuple(int(size) for size in self._images(X).shape[1:])
        h, w = self.shape_[:2]
        if h < self.pool or w < self.pool:
            raise ValueError(f"pool={self.pool} is larger than images of {h} × {w} pixels.")
        self._n_features_out = int((h // self.pool) * (w // self.pool) * np.prod(self.shape_[2:], dtype=int))
        return self

    def _check_loaded(self) -> None:
        """Check a loaded model: the shape must match the number of outputs."""
        if not hasattr(self, "shape_"):
            return
        sizes = list(self.shape_)
        if len(sizes) not in (2, 3) or not all(type(size) is int and size > 0 for size in [*sizes, self.pool]):
            raise ValueError(f"it holds {self.shape_!r} as the shape of images.")
        h, w, *channels = sizes
        if (h // self.pool) * (w // self.pool) * math.prod(channels) != getattr(self, "_n_features_out", None):
            raise ValueError("it holds a shape of images that does not fit the number of outputs.")

    def transform(self, X: Any) -> np.ndarray:
        """One row per image. Pixels beyond the last whole block are left out."""
        check_is_fitted(self)
        images = self._images(X)
        if images.shape[1:] != self.shape_:
            raise ValueError(f"X has images of shape {images.shape[1:]}; training had {self.shape_}.")
        factor = 1.0
        if self.scale and images.dtype.kind in "iu":
            factor = 1.0 / np.iinfo(images.dtype).max
        k, (h, w) = self.pool, self.shape_[:2]
        pixels = images[:, : h // k * k, : w // k * k].astype(self.dtype)
        if k > 1:
            blocks = pixels.reshape(len(pixels), h // k, k, w // k, k, *self.shape_[2:])
            pixels = blocks.mean(axis=(2, 4))
        return pixels.reshape(len(pixels), -1) * np.asarray(factor, dtype=self.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as "pixel(3,14)", with the channel if there are several."""
        check_is_fitted(self)
        h, w, *channels = self.shape_
        sizes = (h // self.pool, w // self.pool, *channels)
        return np.array([f"pixel({','.join(map(str, at))})" for at in np.ndindex(*sizes)], dtype=object)

    def _images(self, X: Any) -> np.ndarray:
        images = np.asarray(X)
        if images.ndim not in (3, 4) or len(images) == 0:
            raise ValueError(f"X must be images of shape (n, h, w) or (n, h, w, channels), got shape {images.shape}.")
        if images.dtype.kind not in "iufb" or not np.all(np.isfinite(images)):
            raise ValueError("Input X must hold finite numbers.")
        return images
