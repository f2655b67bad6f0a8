"""A device that is the processor, whose arrays refuse arrays of the host, as those of a GPU do."""

import numpy as np
from stand_in_device import HostLane, StandIn


def opened(value):
    """Return the arrays of NumPy behind the strict ones."""
    if isinstance(value, tuple | list):
        return type(value)(map(opened, value))
    return value.values if isinstance(value, StrictArray) else value


def closed(value):
    """Return arrays of NumPy, numbers too, as strict ones."""
    if isinstance(value, tuple):
        return tuple(map(closed, value))
    return StrictArray(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def refuse_host(values):
    """Raise TypeError if an array of the host is among these arguments."""
    for value in values:
        if isinstance(value, tuple | list):
            refuse_host(value)
        elif isinstance(value, np.ndarray) and value.ndim > 0:
            raise TypeError("an array of the host was mixed with arrays of the device.")


class StrictArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that answers NumPy's functions if all others are like it, and does not become one of the host by itself.

    Results without dimensions are arrays, too, as those of CuPy.
    """

    __module__ = "cupy.strict"  # so that the library takes it for an array of a GPU

    def __init__(self, values):
        self.values = values

    def __array__(self, *_, **__):
        raise TypeError("an array of the device became one of the host without being asked.")

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        refuse_host(inputs)
        if out := settings.get("out"):
            settings["out"] = opened(out)
        return closed(getattr(ufunc, method)(*opened(inputs), **settings))

    def __array_function__(self, function, types, args, settings):
        if function not in (np.asarray, np.array):
            refuse_host(args)
        return closed(function(*opened(args), **{name: opened(value) for name, value in settings.items()}))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.values, name)
        if name in ("ctypes", "flags") or not callable(found):
            return closed(found) if isinstance(found, np.ndarray) else found
        return lambda *args, **settings: (refuse_host(args), closed(found(*opened(args), **settings)))[1]

    def __getitem__(self, key):
        refuse_host(key if isinstance(key, tuple) else (key,))
        return closed(self.values[opened(key)])

    def __setitem__(self, key, value):
        refuse_host((*(key if isinstance(key, tuple) else (key,)), value))
        self.values[opened(key)] = opened(value)

    def __float__(self):
        return float(self.values)

    def __int__(self):
        return int(self.values)

    def __bool__(self):
        return bool(self.values)

    def get(self):
        """Return a copy in the memory of the host."""
        return np.array(self.values)


class StrictModule:
    """NumPy for strict arrays."""

    def __getattr__(self, name):
        function = getattr(np, name)
        if isinstance(function, type) or not callable(function):
            return function

        def call(*args, **settings):
            if name not in ("asarray", "array"):
                refuse_host(args)
            return closed(function(*opened(args), **settings))

        return call


class StrictLane(HostLane):
    """A lane whose arrays are strict."""

    def arrays(self):
        return closed(super().arrays())


class StrictStandIn(StandIn):
    """The processor in place of a GPU, with strict arrays, for dense rows."""

    xp = StrictModule()

    def launch(self, text, name, grid, n_threads, shared_bytes, args):
        refuse_host(args)
        super().launch(text, name, grid, n_threads, shared_bytes, [opened(arg) for arg in args])

    def to_host(self, array):
        return array.get()

    def to_device(self, array):
        assert isinstance(array, np.ndarray)
        return StrictArray(np.array(array))

    def lane(self):
        return StrictLane()
