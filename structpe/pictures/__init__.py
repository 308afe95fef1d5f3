"""Pictures: a structure with its positions and the learned biases of a model.

``show`` gives a picture of matplotlib, ``page`` an HTML page that needs nothing but itself, ``save`` writes either.
"""

from structpe.pictures.head_patterns import begin, load
from structpe.pictures.page import page, save_page
from structpe.pictures.show import show
from structpe.pictures.style import PictureError, save

__all__ = ["PictureError", "begin", "load", "page", "save", "save_page", "show"]
