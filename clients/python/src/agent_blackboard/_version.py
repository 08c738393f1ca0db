"""The number of this version: that of the server, which it is released with."""

__version__ = "0.1.0"
