"""Evaluation logs of other tools: found by their files, read into one row per example."""

from fairweight.tables.logs.log import Log, LogAudit, Metric, TaskLog, audit_of, read_log, reader_of

__all__ = ["Log", "LogAudit", "Metric", "TaskLog", "audit_of", "read_log", "reader_of"]
