"""The version of mpdoctor."""

__version__ = "0.1.0"
