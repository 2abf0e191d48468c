"""A choice shown: in sentences, on a terminal, as JSON, tables and figures."""
