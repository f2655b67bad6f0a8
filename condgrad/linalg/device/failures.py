"""What a device does when its memory is full, or when it fails: errors of one sentence; the host keeps what it has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_PACKAGES = ("cupy", "cupyx", "cupy_backends")  # whose errors are those of a GPU, or of its driver


class DeviceError(RuntimeError):
    """A device failed or was lost."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The memory of a device is full."""


def is_failure(error: BaseException) -> bool:
    """Tell whether an error comes from a device, or from the library that talks to it."""
    return isinstance(error, DeviceError) or type(error).__module__.partition(".")[0] in _PACKAGES


def explained(error: BaseException) -> DeviceError:
    """Return an error of one sentence for the failure of a device."""
    if isinstance(error, DeviceError):
        return error
    cause = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    if isinstance(error, MemoryError):
        return DeviceMemoryError(
            f"the memory of the GPU is full ({cause}); free arrays there, use float32, or lower the size from which "
            "data are streamed, device_by_name('cuda').most_bytes."
        )
    return DeviceError(
        f"the GPU failed or was lost ({cause}); what is on the host is safe. Start a new process to use the GPU again, "
        "or leave device out."
    )


@contextlib.contextmanager
def failures_explained() -> Iterator[None]:
    """A context in which the failure of a device is an error of one sentence."""
    try:
        yield
    except Exception as error:
        if not is_failure(error) or isinstance(error, DeviceError):
            raise
        raise explained(error) from error
