"""Position models inside models of Hugging Face, PyTorch, PyG, DGL and timm.

Each module is for one library, which is imported when it is first needed. ``inject`` adds a position model to a model,
``eject`` removes it. With ``start="zero"`` a pretrained model computes the same before training, and all parameters of
the position model have gradients.
"""
