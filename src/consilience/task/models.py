"""Descriptions of models, one for each kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from consilience.described.fields import Described
from consilience.models import Model, cnn, mlp


class Mlp(Described):
    """Fully connected, ReLU; no hidden layer is logistic regression."""

    kind: Literal["mlp"] = "mlp"
    hidden: list[Annotated[int, Field(ge=1)]] = Field([200, 200])

    def build(self, shape: tuple[int, ...], outputs: int) -> Model:
        """The network for inputs of this shape."""
        return mlp(shape, outputs, self.hidden)


class Cnn(Described):
    """A small convolutional network."""

    kind: Literal["cnn"] = "cnn"
    channels: list[Annotated[int, Field(ge=1)]] = Field([8, 16], min_length=1)
    hidden: int = Field(64, ge=1)

    def build(self, shape: tuple[int, ...], outputs: int) -> Model:
        """The network for images of this shape."""
        return cnn(shape, outputs, self.channels, self.hidden)


ModelConfig = Annotated[Mlp | Cnn, Field(discriminator="kind")]
