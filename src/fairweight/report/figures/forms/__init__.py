"""Chart forms: each module draws one kind of chart from plain rows and a few typed options."""
