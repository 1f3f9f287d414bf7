"""The laboratory: data sets, protocol, criteria, figures and report of the paper's experiment."""
