#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array};
use arrow_schema::Field as ArrowField;
use proptest::prelude::*;

use super::*;

/// One row as stored: four texts, four numbers, the mask.
#[derive(Debug, Clone, Copy)]
struct Stored<'a> {
    texts: [&'a str; 4],
    numbers: [u64; 4],
    present: u8,
}

/// A pin on a native table ref.
const PIN: Stored = Stored {
    texts: ["", "{}", "node:A", "fork"],
    numbers: [10, 11, 3, 0],
    present: 0b0000_0001,
};

fn children(row: Stored) -> Vec<(&'static str, ArrayRef)> {
    let text = |at: usize| Arc::new(StringArray::from(vec![row.texts[at]])) as ArrayRef;
    let number = |at: usize| Arc::new(UInt64Array::from(vec![row.numbers[at]])) as ArrayRef;
    vec![
        ("location", text(0)),
        ("metadata", text(1)),
        ("table_key", text(2)),
        ("stable_table_id", number(0)),
        ("table_incarnation_id", number(1)),
        ("table_version", number(2)),
        ("table_branch", text(3)),
        ("row_count", number(3)),
        ("present", Arc::new(UInt8Array::from(vec![row.present]))),
    ]
}

fn record(children: Vec<(&str, ArrayRef)>) -> StructArray {
    StructArray::from(
        children
            .into_iter()
            .map(|(name, array)| {
                let field = ArrowField::new(name, array.data_type().clone(), true);
                (Arc::new(field), array)
            })
            .collect::<Vec<_>>(),
    )
}

fn decoded(row: Stored) -> Result<(), String> {
    Packed::of(&record(children(row)))?
        .fill(0, LogicalRow::default())
        .map(|_| ())
}

#[test]
fn a_set_bit_is_null_and_a_clear_one_a_value() {
    let column = record(children(PIN));
    let packed = Packed::of(&column).unwrap();
    let key = LogicalRow {
        object_id: "k",
        object_type: "t",
        schema_ir: Some("{}"),
        ..LogicalRow::default()
    };
    let row = packed.fill(0, key).unwrap();
    assert_eq!(
        (row.object_id, row.object_type, row.schema_ir),
        ("k", "t", Some("{}"))
    );
    assert_eq!(
        (row.location, row.metadata, row.table_key, row.table_branch),
        (None, Some("{}"), "node:A", Some("fork"))
    );
    assert_eq!(
        (
            row.stable_table_id,
            row.table_incarnation_id,
            row.table_version,
            row.row_count
        ),
        (Some(10), Some(11), Some(3), Some(0))
    );
    // Everything null but the key, which is the empty text on a row without a table.
    let bare = record(children(Stored {
        texts: [""; 4],
        numbers: [0; 4],
        present: 0b1111_1011,
    }));
    let row = Packed::of(&bare)
        .unwrap()
        .fill(0, LogicalRow::default())
        .unwrap();
    assert_eq!(
        (row.table_key, row.metadata, row.row_count),
        ("", None, None)
    );
    // An empty text under a clear bit is an empty text.
    let empty = record(children(Stored {
        present: 0b0000_0000,
        ..PIN
    }));
    let row = Packed::of(&empty)
        .unwrap()
        .fill(0, LogicalRow::default())
        .unwrap();
    assert_eq!(row.location, Some(""));
}

#[test]
fn values_under_set_bits_and_a_null_key_are_refused() {
    for (bit, name) in [
        (1, "metadata is marked null but holds '{}'"),
        (2, "table_key is marked null but holds 'node:A'"),
        (3, "stable_table_id is marked null but holds 10"),
        (4, "table_incarnation_id is marked null but holds 11"),
        (5, "table_version is marked null but holds 3"),
        (6, "table_branch is marked null but holds 'fork'"),
    ] {
        let row = Stored {
            present: PIN.present | 1 << bit,
            ..PIN
        };
        assert_eq!(decoded(row).expect_err(name), name);
    }
    let location = Stored {
        texts: ["nodes/x", "{}", "node:A", "fork"],
        ..PIN
    };
    assert!(
        decoded(location)
            .expect_err("bit 0")
            .starts_with("location")
    );
    let count = Stored {
        numbers: [10, 11, 3, 9],
        present: 0b1000_0001,
        ..PIN
    };
    assert!(decoded(count).expect_err("bit 7").starts_with("row_count"));
    let keyless = Stored {
        texts: ["", "{}", "", "fork"],
        present: 0b0000_0101,
        ..PIN
    };
    assert!(decoded(keyless).expect_err("bit 2").contains("never store"));
}

#[test]
fn other_children_and_nulls_are_refused() {
    type Change = fn(&mut Vec<(&'static str, ArrayRef)>);
    for (words, change) in [
        (
            "child 8 of the column record is not present",
            (|c| c[8].1 = Arc::new(UInt32Array::from(vec![1]))) as Change,
        ),
        ("child 0 of the column record", |c| c.swap(0, 1)),
        ("child 8 of the column record", |c| c.truncate(8)),
        ("child 3 of the column record", |c| c[3].0 = "table_id"),
        ("holds a null", |c| {
            c[1].1 = Arc::new(StringArray::from(vec![None::<&str>]));
        }),
        ("holds a null", |c| {
            c[8].1 = Arc::new(UInt8Array::from(vec![None]));
        }),
    ] {
        let mut columns = children(PIN);
        change(&mut columns);
        let column = record(columns);
        let why = Packed::of(&column).err().expect(words);
        assert!(why.contains(words), "{why} does not say {words}");
    }
    let fields = record(children(PIN));
    let null = StructArray::new(
        fields.fields().clone(),
        fields.columns().to_vec(),
        Some(vec![false].into()),
    );
    assert!(Packed::of(&null).is_err());
}

proptest! {
    /// Whatever the mask says, a row decodes exactly when every field under a set bit is its filler.
    #[test]
    fn masks_and_fillers(present: u8, filled: u8) {
        let value = |bit: usize| filled & (1 << bit) != 0;
        let text = |bit: usize| if value(bit) { "x" } else { "" };
        let number = |bit: usize| u64::from(value(bit));
        let row = Stored {
            texts: [text(0), text(1), text(2), text(6)],
            numbers: [number(3), number(4), number(5), number(7)],
            present,
        };
        let want = present & filled == 0 && present & 0b100 == 0;
        prop_assert_eq!(decoded(row).is_ok(), want);
    }
}
