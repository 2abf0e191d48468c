"""Every model's answer on every example, indexed once and looked up in milliseconds."""
