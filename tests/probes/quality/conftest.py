"""The embedded service, as the endpoint tests start it."""

from tests.probes.endpoints.conftest import embedded

__all__ = ["embedded"]
