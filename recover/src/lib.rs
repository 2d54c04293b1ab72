//! Finishing interrupted writes and drift of stamps 6, 8 and 9.
