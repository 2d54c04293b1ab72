#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod identities;
mod invalid;
mod reading;
mod vectors;

use super::*;
use crate::schema::source::{Compiled, ParseMode, compile};
use crate::schema::vintage::Vintage;

const DOMAIN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn compiled(source: &str) -> Compiled {
    match compile(source, ParseMode::Tolerant, None) {
        Ok(compiled) => compiled,
        Err(e) => panic!("{source}\n{e}"),
    }
}

/// The IR of a source that is accepted first.
fn initial(source: &str, vintage: Vintage) -> SchemaIr {
    resolve(&compiled(source), None, DOMAIN, vintage).unwrap()
}

/// A schema that uses everything: of the legacy vintage, no edge key.
fn everything(vintage: Vintage) -> SchemaIr {
    initial(
        r#"
interface Named { title: String @index @description("shown") }
interface Tagged { tags: [String]? }
node Alpha implements Named { title: String k: I64 @key @a @b }
node Zed @beta @gamma implements Tagged, Named {
  code: String @key
  kind: enum(spot, area)
  near: Vector(8)? @embed(title, model="m1")
  score: F64?
  @range(score, -1.5..2) @check(code, "x") @unique(score, kind)
}
edge Links: Zed -> Alpha @card(1..5) { w: U32? @index  v: I32  @unique(w, @src, @dst) }
edge Other: Zed -> Zed
"#,
        vintage,
    )
}
