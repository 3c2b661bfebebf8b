"""Lets the conformance suites use the test server one folder up, also when they are run alone."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
