//! JSONL records of a graph.
