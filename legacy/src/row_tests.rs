#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use proptest::prelude::*;

const ID: &str = "000000000000000a:000000000000000b";
const PIN: &str = r#"{"manifest_path":"p","manifest_size":null,"e_tag":null,"naming_scheme":"V2"}"#;

fn key(prefix: &str, clock: &str) -> String {
    format!("{prefix}:{ID}:{clock}")
}

fn table<'a>() -> LogicalRow<'a> {
    LogicalRow {
        object_id: "table:000000000000000a:000000000000000b",
        object_type: "table",
        location: Some("nodes/000000000000000a-000000000000000b"),
        table_key: "node:A",
        stable_table_id: Some(10),
        table_incarnation_id: Some(11),
        ..LogicalRow::default()
    }
}

fn pin(object_id: &str) -> LogicalRow<'_> {
    LogicalRow {
        object_id,
        object_type: "table_version",
        location: None,
        metadata: Some(PIN),
        table_version: Some(3),
        table_branch: Some("fork"),
        row_count: Some(0),
        ..table()
    }
}

fn tombstone(object_id: &str) -> LogicalRow<'_> {
    LogicalRow {
        object_id,
        object_type: "table_tombstone",
        location: None,
        table_version: Some(4),
        ..table()
    }
}

fn commit<'a>() -> LogicalRow<'a> {
    LogicalRow {
        object_id: "C",
        object_type: "graph_commit",
        metadata: Some(r#"{"parent_commit_id":"P","created_at":5}"#),
        table_version: Some(7),
        table_branch: Some("feature"),
        ..LogicalRow::default()
    }
}

fn head<'a>() -> LogicalRow<'a> {
    LogicalRow {
        object_id: "graph_head:team/x",
        object_type: "graph_head",
        metadata: Some(r#"{"head_commit_id":"C"}"#),
        ..LogicalRow::default()
    }
}

#[test]
fn each_row_type_decodes() {
    let Row::Table(t) = table().decode().unwrap() else {
        panic!("a table row")
    };
    assert_eq!(
        (t.identity.stable_table_id, t.table_key.as_str()),
        (10, "node:A")
    );

    let id = key("table_version", "00000000000000000012");
    let Row::Pin { pin: p, .. } = pin(&id).decode().unwrap() else {
        panic!("a pin")
    };
    assert_eq!(
        (p.manifest_version, p.table_version, p.row_count),
        (12, 3, 0)
    );
    assert_eq!(p.table_branch.as_deref(), Some("fork"));

    let id = key("table_tombstone", "00000000000000000013");
    let dropped = tombstone(&id).decode().unwrap();
    assert!(matches!(
        dropped,
        Row::Tombstone {
            clock: 13,
            sealed_version: 4,
            ..
        }
    ));

    let Row::Commit(c) = commit().decode().unwrap() else {
        panic!("a commit")
    };
    assert_eq!((c.id.as_str(), c.version, c.created_at), ("C", 7, 5));
    assert_eq!(
        (c.branch.as_deref(), c.parent.as_deref()),
        (Some("feature"), Some("P"))
    );

    assert_eq!(
        head().decode().unwrap(),
        Row::Head {
            branch: "team/x".into(),
            commit: "C".into()
        }
    );
}

#[test]
fn refusals_name_their_cause() {
    let good = key("table_version", "00000000000000000012");
    let short = key("table_version", "0000000000000000012");
    let signed = key("table_version", "+0000000000000000012");
    let wide = key("table_version", "99999999999999999999");
    let upper = "table_version:000000000000000A:000000000000000B:00000000000000000012";
    let foreign = "table_version:000000000000000a:000000000000000c:00000000000000000012";
    let drop_key = key("table_tombstone", "00000000000000000012");
    for (row, words) in [
        (
            LogicalRow {
                object_type: "settled_commit",
                ..head()
            },
            "unknown object type",
        ),
        (
            LogicalRow {
                object_id: "schema_contract",
                ..commit()
            },
            "key of the contract row",
        ),
        (
            LogicalRow {
                object_id: "table:a:b",
                ..table()
            },
            "does not fit",
        ),
        (
            LogicalRow {
                location: Some("nodes/x"),
                ..table()
            },
            "path 'nodes/x'",
        ),
        (
            LogicalRow {
                location: None,
                ..table()
            },
            "path null",
        ),
        (
            LogicalRow {
                table_key: "edge:A",
                ..table()
            },
            "expected 'edges/",
        ),
        (
            LogicalRow {
                table_key: "A",
                ..table()
            },
            "neither node:",
        ),
        (
            LogicalRow {
                stable_table_id: Some(0),
                ..table()
            },
            "zero part",
        ),
        (
            LogicalRow {
                table_incarnation_id: None,
                ..table()
            },
            "identity is null",
        ),
        (
            LogicalRow {
                metadata: Some("{}"),
                ..table()
            },
            "column metadata",
        ),
        (pin(&short), "20 decimal digits"),
        (pin(&signed), "20 decimal digits"),
        (pin(&wide), "above"),
        (pin(upper), "does not fit"),
        (pin(foreign), "does not fit"),
        (pin(&drop_key), "does not fit"),
        (
            LogicalRow {
                metadata: None,
                ..pin(&good)
            },
            "no metadata",
        ),
        (
            LogicalRow {
                metadata: Some("{}"),
                ..pin(&good)
            },
            "not valid JSON",
        ),
        (
            LogicalRow {
                table_version: None,
                ..pin(&good)
            },
            "no table_version",
        ),
        (
            LogicalRow {
                row_count: None,
                ..pin(&good)
            },
            "no row_count",
        ),
        (
            LogicalRow {
                location: Some("nodes/x"),
                ..pin(&good)
            },
            "column location",
        ),
        (
            LogicalRow {
                table_key: "",
                ..pin(&good)
            },
            "neither node:",
        ),
        (
            LogicalRow {
                table_version: None,
                ..tombstone(&drop_key)
            },
            "no sealed",
        ),
        (
            LogicalRow {
                row_count: Some(1),
                ..tombstone(&drop_key)
            },
            "column row_count",
        ),
        (
            LogicalRow {
                stable_table_id: Some(1),
                ..commit()
            },
            "must not carry",
        ),
        (
            LogicalRow {
                table_key: "node:A",
                ..commit()
            },
            "column table_key",
        ),
        (
            LogicalRow {
                table_version: None,
                ..commit()
            },
            "no __manifest version",
        ),
        (
            LogicalRow {
                metadata: None,
                ..commit()
            },
            "metadata is null",
        ),
        (
            LogicalRow {
                object_id: "",
                ..commit()
            },
            "empty id",
        ),
        (
            LogicalRow {
                table_incarnation_id: Some(1),
                ..head()
            },
            "must not carry",
        ),
        (
            LogicalRow {
                object_id: "graph_head:",
                ..head()
            },
            "graph_head:<branch>",
        ),
        (
            LogicalRow {
                object_id: "head:x",
                ..head()
            },
            "graph_head:<branch>",
        ),
        (
            LogicalRow {
                table_version: Some(1),
                ..head()
            },
            "column table_version",
        ),
        (
            LogicalRow {
                schema_ir: Some("{}"),
                ..head()
            },
            "column schema_ir",
        ),
    ] {
        let why = row.decode().expect_err(words);
        assert!(why.contains(words), "{why} does not say {words}");
    }
}

proptest! {
    /// A clock is read from exactly one spelling of its key.
    #[test]
    fn clocks_round_trip(clock: u64) {
        let id = key("table_version", &format!("{clock:020}"));
        match pin(&id).decode() {
            Ok(Row::Pin { pin, .. }) => prop_assert_eq!(pin.manifest_version, clock),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// No text in the key makes decoding panic.
    #[test]
    fn keys_never_panic(id in ".{0,80}", kind in 0_usize..6) {
        let kind = ["table", "table_version", "table_tombstone", "graph_commit", "graph_head", "schema_contract"][kind];
        for row in [table(), pin(&id), commit(), head()] {
            let _ = LogicalRow { object_id: &id, object_type: kind, ..row }.decode();
        }
    }
}
