"""Studies: from configuration to runs, metrics, figures, tables, verdicts and pages."""
