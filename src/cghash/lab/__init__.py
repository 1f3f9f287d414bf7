"""The laboratory: data sets, features, experiments, and their reports."""
