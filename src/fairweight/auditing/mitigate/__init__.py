"""What helps: new answers from old ones (thresholds, overrides, a cascade), and their re-audit."""
