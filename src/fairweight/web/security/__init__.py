"""Safe by default: one rule per file, each a small layer around the application.

From the outside in: `connections` (who is waited for, and how long), `headers` (every answer),
`hosts` (who is asked), `access` (who asks), `writes` (from which page), `body` (how much).
"""
