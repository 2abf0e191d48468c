"""Which variant to ship: objectives, frontier, requirements, values, and how sure the choice is."""
