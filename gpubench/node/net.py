"""Addresses of interfaces, and whether a port answers."""

import contextlib
import fcntl
import socket
import struct

SIOCGIFADDR = 0x8915  # linux/sockios.h


def interface_address(interface: str) -> str:
    """IPv4 address of a network interface.

    Raises:
        OSError: no such interface, or it has no address; the message names the interfaces that exist.
    """
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            packed = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError as error:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise OSError(f"interface {interface} has no IPv4 address here (there is: {names})") from error
    return socket.inet_ntoa(packed[20:24])


def split_address(address: str) -> "tuple[str, str, int]":
    """``ucxx://127.0.0.1:8786`` → (``ucxx``, ``127.0.0.1``, 8786)."""
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition(":")
    return scheme, host, int(port)


def answers(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether something accepts a TCP connection there."""
    try:
        with contextlib.closing(socket.create_connection((host, port), timeout=timeout_s)):
            return True
    except OSError:
        return False
