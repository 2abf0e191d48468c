"""One router per page."""
