"""The web page: studies, reports and examples in a browser."""
