//! The omnigraph command line.
fn main() {}
