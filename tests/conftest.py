"""What holds for every test."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine makes an example slow, never wrong.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden", action="store_true", help="write generated pages over the golden files they are compared with"
    )
