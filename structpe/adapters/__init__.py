"""Position models inside models of Hugging Face, PyTorch, PyG, DGL and timm.

:func:`inject` adds a position model to a model, :func:`eject` removes it. With ``start="zero"`` a pretrained model
computes the same before training, and all parameters of the position model have gradients. Each module is for one
library, which is imported when it is first needed.
"""

from typing import TYPE_CHECKING

from structpe.faces import face

if TYPE_CHECKING:
    from structpe.adapters.hosts import Handle, dims, eject, inject

__all__ = ["Handle", "dims", "eject", "inject"]

__getattr__, __dir__ = face(__name__, {"dims": "hosts", "eject": "hosts", "Handle": "hosts", "inject": "hosts"})
