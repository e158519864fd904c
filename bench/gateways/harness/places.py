"""Decides where the bench finds its own files and the project's.

It exists so that no other module counts folders. It refuses places outside the project.
"""

import os

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROJECT = os.path.dirname(os.path.dirname(BENCH))
TOOLS = os.path.join(BENCH, "tools")
CONF = os.path.join(BENCH, "conf")
