//! Which of the three stored shapes a `__manifest` version has (`docs/format/legacy-manifest.md` 2).
//!
//! Names, types and order of the `record` children decide; nullability is not compared, because
//! releases changed it without changing what the columns mean.

use arrow_schema::{DataType, Schema};

/// The stored shape of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One column per field (unstamped and stamps 5 to 11).
    Flat,
    /// A packed `record`, no content columns (stamp 12).
    Packed12,
    /// A packed `record` and the two content columns (stamp 13).
    Packed13,
}

/// Children of the packed `record`, in stored order.
const RECORD: [(&str, DataType); 9] = [
    ("location", DataType::Utf8),
    ("metadata", DataType::Utf8),
    ("table_key", DataType::Utf8),
    ("stable_table_id", DataType::UInt64),
    ("table_incarnation_id", DataType::UInt64),
    ("table_version", DataType::UInt64),
    ("table_branch", DataType::Utf8),
    ("row_count", DataType::UInt64),
    ("present", DataType::UInt8),
];
const CONTENT: [&str; 2] = ["schema_source", "schema_ir"];

impl Shape {
    /// The shape of a stored schema; `None` when it is none of the three.
    pub fn of(schema: &Schema) -> Option<Self> {
        let column = |name: &str| schema.field_with_name(name).ok().map(|f| f.data_type());
        let content = CONTENT.map(column);
        match column("record") {
            None => {
                let identity = ["stable_table_id", "table_incarnation_id"]
                    .into_iter()
                    .all(|name| column(name).is_some());
                (identity && content == [None, None]).then_some(Self::Flat)
            }
            Some(DataType::Struct(children)) => {
                let same = children.len() == RECORD.len()
                    && children
                        .iter()
                        .zip(&RECORD)
                        .all(|(f, (name, kind))| f.name() == name && f.data_type() == kind);
                match content {
                    _ if !same => None,
                    [None, None] => Some(Self::Packed12),
                    [Some(DataType::LargeUtf8), Some(DataType::LargeUtf8)] => Some(Self::Packed13),
                    _ => None,
                }
            }
            Some(_) => None,
        }
    }

    /// The shape that rows read as `stamp` must have (2.4); 1 stands for unstamped.
    pub fn of_stamp(stamp: u32) -> Self {
        match stamp {
            13.. => Self::Packed13,
            12 => Self::Packed12,
            _ => Self::Flat,
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flat => "one column per field",
            Self::Packed12 => "a packed record without content columns",
            Self::Packed13 => "a packed record with content columns",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{Field, Fields};

    fn record(children: &[(&str, DataType)]) -> Field {
        let fields: Fields = children
            .iter()
            .map(|(name, kind)| Field::new(*name, kind.clone(), true))
            .collect();
        Field::new("record", DataType::Struct(fields), false)
    }

    fn text(name: &str, kind: DataType) -> Field {
        Field::new(name, kind, true)
    }

    fn base(more: Vec<Field>) -> Schema {
        let mut fields = vec![
            Field::new("object_id", DataType::Utf8, false),
            Field::new("object_type", DataType::Utf8, false),
        ];
        fields.extend(more);
        Schema::new(fields)
    }

    #[test]
    fn each_shape_and_its_neighbours() {
        let ids = || {
            vec![
                text("stable_table_id", DataType::UInt64),
                text("table_incarnation_id", DataType::UInt64),
            ]
        };
        let content = |kind: DataType| CONTENT.map(|name| text(name, kind.clone())).to_vec();
        let packed = |more: Vec<Field>| {
            let mut fields = vec![record(&RECORD)];
            fields.extend(more);
            base(fields)
        };
        let mut wide = RECORD.to_vec();
        wide[8].1 = DataType::UInt32;
        let mut swapped = RECORD.to_vec();
        swapped.swap(0, 1);

        for (name, schema, want) in [
            ("flat", base(ids()), Some(Shape::Flat)),
            ("one id only", base(ids()[..1].to_vec()), None),
            (
                "flat with content",
                base([ids(), content(DataType::LargeUtf8)].concat()),
                None,
            ),
            ("packed 12", packed(vec![]), Some(Shape::Packed12)),
            (
                "packed 13",
                packed(content(DataType::LargeUtf8)),
                Some(Shape::Packed13),
            ),
            ("small text", packed(content(DataType::Utf8)), None),
            (
                "one content column",
                packed(content(DataType::LargeUtf8)[..1].to_vec()),
                None,
            ),
            ("stamp 14 mask", base(vec![record(&wide)]), None),
            ("order", base(vec![record(&swapped)]), None),
            ("missing child", base(vec![record(&RECORD[..8])]), None),
            (
                "record is text",
                base([vec![text("record", DataType::Utf8)], ids()].concat()),
                None,
            ),
        ] {
            assert_eq!(Shape::of(&schema), want, "{name}");
        }
    }

    #[test]
    fn shapes_by_stamp() {
        for (stamp, want) in [
            (1, Shape::Flat),
            (6, Shape::Flat),
            (11, Shape::Flat),
            (12, Shape::Packed12),
            (13, Shape::Packed13),
        ] {
            assert_eq!(Shape::of_stamp(stamp), want, "{stamp}");
        }
    }
}
