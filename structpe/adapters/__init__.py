"""Position models inside models of other libraries: Hugging Face's, PyTorch's, PyG's, DGL's and timm's.

Each module is for one library, which is imported when it is first needed. A position model enters a pretrained model so
that at first nothing changes, and all numbers of the position model can be learned (``start="zero"``).
"""
