"""A Ray cluster: one that runs already, or one on this machine for as long as it is needed."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from fairweight.errors import InputError

KNOCK = 10.0  # seconds for a cluster to answer at all


@contextmanager
def cluster(address: str, cpus: int | None = None) -> Iterator[Any]:
    """The module `ray`, connected; a connection that is there already is used and kept.

    Parameters
    ----------
    address
        `local` starts a cluster on this machine, which ends with the block.
    cpus
        Cores of a local cluster; None: all.
    """
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    _connect(ray, address, cpus)
    try:
        yield ray
    finally:
        ray.shutdown()


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing goes out to anybody
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError(
            "--ray needs Ray, which is not installed: pip install 'fairweight[ray]'."
        ) from None


def _connect(ray: Any, address: str, cpus: int | None) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False, "include_dashboard": False}
    if address == "local":
        # Over loopback: a cluster of one machine needs no network, nor that there is one.
        ray.init(address="local", num_cpus=cpus, _node_ip_address="127.0.0.1", **quiet)
        return
    try:
        _knock(address)
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise InputError(
            f"--ray {address}: no connection to a Ray cluster there ({_first_line(error)}); give "
            "'local', or the address that `ray start --head` printed, with the same version of "
            "Ray, and the head node's token if it asks for one (RAY_AUTH_MODE=token and "
            "RAY_AUTH_TOKEN_PATH)."
        ) from error


def _knock(address: str) -> None:
    """Fail at once where nobody is: Ray itself would go on trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
