"""Evaluation logs of other tools: found by their files, read into one row per example."""

from fairweight.tables.logs.comparability import LogAudit, audit_of
from fairweight.tables.logs.log import Log, LogRequest, Metric, TaskLog, read_log, reader_of

__all__ = [
    "Log",
    "LogAudit",
    "LogRequest",
    "Metric",
    "TaskLog",
    "audit_of",
    "read_log",
    "reader_of",
]
