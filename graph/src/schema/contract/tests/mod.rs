#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archive;
mod root;
mod row;

use super::*;
use crate::schema::ir::resolve;
use crate::schema::source::compile;
use crate::schema::vintage::Vintage;

const DOMAIN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const SOURCE: &str = "// accepted\nnode A { k: String @key v: I32? @range(v, ..5) }\nedge E: A -> A { @unique(src, dst) }\n";

fn ir(source: &str) -> SchemaIr {
    let compiled = compile(source, ParseMode::Tolerant, None).unwrap();
    resolve(&compiled, None, DOMAIN, Vintage::Legacy).unwrap()
}
