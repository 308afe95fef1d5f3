"""Sockets of commands that serve pages or requests."""

from __future__ import annotations

import socket

from structpe.errors import StructPEError

__all__ = ["HERE", "address_of", "listening"]

HERE = "127.0.0.1"
"""The address of this machine that others do not reach."""


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        StructPEError: the port is taken, or the address is not of this machine.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise StructPEError(f"{host}:{port} cannot be used: {error.strerror}; give another --port or --host") from None


def address_of(host: str, listens: socket.socket) -> str:
    """The address of the first page."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listens.getsockname()[1]}/"
