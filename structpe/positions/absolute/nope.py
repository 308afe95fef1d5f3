"""No position information (Haviv et al. 2022; Kazemnejad et al. 2023)."""

from __future__ import annotations

from structpe.positions import Cells, Dims, PositionModel, Spec

__all__ = ["NoPE"]


class NoPE(PositionModel, name="nope"):
    """No position information (Haviv et al. 2022; Kazemnejad et al. 2023).

    x_t and s_ij as they are.

    In a decoder the causal mask is not symmetric, so that several layers can learn to count: this is the only position
    information, and the mask is not part of this model. (Kazemnejad et al. 2023, section 5.) In an encoder units are a
    set. An empty sum of position models is the same; this one has a name.

    Args:
        dims: sizes of the Transformer.
    """

    spec = Spec(
        "kazemnejad2023",
        "sequence",
        Cells("R", "-", learnable=False, recurring=False, unbound=False, params="0"),
        note="without positions, nothing changes when the text is shifted: only this makes it relative",
    )

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims, [])
