"""Descriptions of models, one for each kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from consilience.described.fields import Described
from consilience.errors import InputError
from consilience.models import Model, cnn, mlp


class Mlp(Described):
    """Fully connected; no hidden layer is logistic regression."""

    kind: Literal["mlp"] = "mlp"
    hidden: list[Annotated[int, Field(ge=1)]] = Field([200, 200])
    activation: Literal["relu", "sigmoid"] = Field("relu", description="of hidden units")

    def build(self, shape: tuple[int, ...], outputs: int) -> Model:
        """The network for inputs of this shape."""
        return mlp(shape, outputs, self.hidden, self.activation)


class Cnn(Described):
    """A small convolutional network."""

    kind: Literal["cnn"] = "cnn"
    channels: list[Annotated[int, Field(ge=1)]] = Field([8, 16], min_length=1)
    hidden: int = Field(64, ge=1)

    def build(self, shape: tuple[int, ...], outputs: int) -> Model:
        """The network for images of this shape."""
        return cnn(shape, outputs, self.channels, self.hidden)


class GivenModel(Described):
    """One that was handed over in Python and cannot be written down."""

    kind: Literal["given"] = "given"
    parameters: int = Field(0, ge=0, description="how many it has")
    network: Any = Field(None, exclude=True)

    def build(self, shape: tuple[int, ...], outputs: int) -> Model:
        """As it was given."""
        if not isinstance(self.network, Model):
            raise InputError(
                "model: was given in Python; give it again: cs.load(folder, model=…), or the same cs.learn(…)"
            )
        if self.network.size != self.parameters:
            raise InputError(f"model: must have {self.parameters} parameters, as the run's, got {self.network.size}")
        return self.network


ModelConfig = Annotated[Mlp | Cnn, Field(discriminator="kind")]
AnyModelConfig = Annotated[Mlp | Cnn | GivenModel, Field(discriminator="kind")]
