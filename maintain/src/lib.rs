//! Maintenance of a stamp-14 graph: cleanup, optimize, repair.
