//! The write path of a stamp-14 graph.
