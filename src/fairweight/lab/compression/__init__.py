"""Making models smaller: masks, schedules, methods, channels really removed, int8."""
