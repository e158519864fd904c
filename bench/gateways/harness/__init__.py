"""The measuring side of the gateway bench: processes, slices, ratios, goals and tables."""
