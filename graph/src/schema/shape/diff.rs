//! Says in words where two shapes part, for the person who has to mend a contract.

use serde::Serialize;

use super::{PropertyShape, SchemaShape};
use crate::schema::text::{FloatSpelling, compact};

/// The first difference between `left` (called "the source") and `right` ("the IR").
pub fn describe(left: &SchemaShape, right: &SchemaShape) -> String {
    let found = by_name(
        "interface",
        &left.interfaces,
        &right.interfaces,
        |i| &i.name,
        |a, b| properties(&a.properties, &b.properties),
    )
    .or_else(|| {
        by_name(
            "node type",
            &left.nodes,
            &right.nodes,
            |n| &n.name,
            |a, b| {
                properties(&a.properties, &b.properties)
                    .or_else(|| part("constraints", &a.constraints, &b.constraints))
                    .or_else(|| part("interfaces", &a.implements, &b.implements))
                    .or_else(|| part("annotations", &a.annotations, &b.annotations))
            },
        )
    })
    .or_else(|| {
        by_name(
            "edge type",
            &left.edges,
            &right.edges,
            |e| &e.name,
            |a, b| {
                properties(&a.properties, &b.properties)
                    .or_else(|| part("constraints", &a.constraints, &b.constraints))
                    .or_else(|| {
                        part(
                            "endpoints",
                            &[&a.from_type, &a.to_type],
                            &[&b.from_type, &b.to_type],
                        )
                    })
                    .or_else(|| part("cardinalities", &[a.cardinality], &[b.cardinality]))
                    .or_else(|| part("annotations", &a.annotations, &b.annotations))
            },
        )
    });
    found.unwrap_or_else(|| "the order of its parts differs".to_string())
}

/// Compare two lists that are ordered by name.
fn by_name<T>(
    what: &str,
    left: &[T],
    right: &[T],
    name: impl Fn(&T) -> &String,
    inner: impl Fn(&T, &T) -> Option<String>,
) -> Option<String> {
    let mut rights = right.iter().peekable();
    for l in left {
        match rights.peek() {
            Some(r) if name(r) < name(l) => {
                return Some(format!("{what} {} is only in the IR", name(r)));
            }
            Some(r) if name(r) == name(l) => {
                if let Some(difference) = inner(l, r) {
                    return Some(format!("{what} {}: {difference}", name(l)));
                }
                rights.next();
            }
            _ => return Some(format!("{what} {} is only in the source", name(l))),
        }
    }
    rights
        .next()
        .map(|r| format!("{what} {} is only in the IR", name(r)))
}

fn properties(left: &[PropertyShape], right: &[PropertyShape]) -> Option<String> {
    by_name(
        "property",
        left,
        right,
        |p| &p.name,
        |a, b| {
            if a.prop_type != b.prop_type {
                return Some(format!(
                    "the type is {} in the source and {} in the IR",
                    a.prop_type, b.prop_type
                ));
            }
            if compact(a, FloatSpelling::Plus) != compact(b, FloatSpelling::Plus) {
                return Some("annotations or provenance differ".to_string());
            }
            None
        },
    )
}

fn part<T: Serialize>(what: &str, left: &[T], right: &[T]) -> Option<String> {
    let differ = compact(&left, FloatSpelling::Plus) != compact(&right, FloatSpelling::Plus);
    differ.then(|| format!("the {what} differ"))
}
