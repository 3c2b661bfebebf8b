"""From a completion's text to a verdict: extraction, comparison, and the processes that bound it.

VERSION is part of the key under which verdicts are stored: it changes when any rule changes.
"""

VERSION = "6"
