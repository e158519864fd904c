"""Tests of the gateway bench: `python3 -B -m unittest discover -t . tests` in bench/gateways."""
