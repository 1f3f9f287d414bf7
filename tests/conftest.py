"""Settings that all tests share."""

import os

from hypothesis import settings

# the same examples in every run of CI, so that a change is judged by what it changes; new ones on every other run
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
