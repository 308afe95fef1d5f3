"""Pictures of structures, of encodings, and of the heads of position models.

``show`` makes a matplotlib figure, which ``save`` writes; ``page`` makes an HTML page, which ``save_page`` writes.
"""

from structpe.pictures.head_patterns import begin, load
from structpe.pictures.page import page, save_page
from structpe.pictures.show import show
from structpe.pictures.style import PictureError, save

__all__ = ["PictureError", "begin", "load", "page", "save", "save_page", "show"]
