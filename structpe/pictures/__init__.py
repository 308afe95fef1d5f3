"""Pictures of structures, of encodings, and of the heads of position models.

``show`` makes a matplotlib figure, which ``save`` writes; ``page`` makes an HTML page, which ``save_page`` writes.
"""

from structpe.pictures.head_patterns import begin, load
from structpe.pictures.page import page, save_page
from structpe.pictures.setting import Setting
from structpe.pictures.show import show
from structpe.pictures.style import PictureError, save
from structpe.pictures.view import view

__all__ = ["PictureError", "Setting", "begin", "load", "page", "save", "save_page", "show", "view"]
