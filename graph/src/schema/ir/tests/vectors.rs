//! The worked vectors of `docs/format/tables-and-schema.md` 5.3, each through source, shape, resolution, IR
//! and hash.

use super::*;

/// Vector 1, endpoints as the current vintage spells them.
const ONE: &str = "node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: Date?  @unique(@src, @dst) }
";
const ONE_DOMAIN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// Vector 2 as initialized.
const TWO_INIT: &str = r#"interface Named { label: String @index }
node Site implements Named {
  code: String @key
  grade: enum(low, high)?
  height: I32?
  @range(height, 0..9000)
}
edge Road: Site -> Site @card(0..4) { km: F64  @unique(src, dst) }
"#;
/// Vector 2 as applied.
const TWO_APPLIED: &str = r#"interface Named { label: String @index }
node Place @rename_from("Site") implements Named {
  code: String @key
  area: F32?   // new
  grade: enum(low, high)?
  altitude: I32? @rename_from("height")
  @range(altitude, 0..9000)
}
edge Road: Place -> Place @card(0..4) { km: F64  @unique(src, dst) }
"#;
const TWO_DOMAIN: &str = "01M8PK6329VC5DRE8X1YH9472S";
const TWO_SHAPE: &str = r#"{"interfaces":[{"name":"Named","properties":[{"name":"label","prop_type":{"scalar":"String","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":["index"],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]}]}],"nodes":[{"name":"Place","annotations":[],"implements":["Named"],"properties":[{"name":"altitude","prop_type":{"scalar":"I32","nullable":true,"list":false,"enum_values":null},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"area","prop_type":{"scalar":"F32","nullable":true,"list":false,"enum_values":null},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"code","prop_type":{"scalar":"String","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":["key"],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"grade","prop_type":{"scalar":"String","nullable":true,"list":false,"enum_values":["high","low"]},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"label","prop_type":{"scalar":"String","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":["index"],"embed_source":null,"declared_directly":false,"satisfies_interface_properties":[{"owner_name":"Named","property_name":"label"}]}],"constraints":[{"Index":["label"]},{"Key":["code"]},{"Range":{"property":"altitude","min":{"Integer":0},"max":{"Integer":9000}}}]}],"edges":[{"name":"Road","from_type":"Place","to_type":"Place","cardinality":{"min":0,"max":4},"annotations":[],"properties":[{"name":"km","prop_type":{"scalar":"F64","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]}],"constraints":[{"Unique":["dst","src"]}]}]}"#;
const TWO_IR: &str = r#"{"ir_version":2,"schema_identity_domain":"01M8PK6329VC5DRE8X1YH9472S","next_identity_id":13,"interfaces":[{"name":"Named","type_id":1,"properties":[{"name":"label","property_id":4,"prop_type":{"scalar":"String","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":["index"],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]}]}],"nodes":[{"name":"Place","type_id":2,"table_incarnation_id":10,"annotations":[],"implements":[{"type_id":1,"type_name":"Named"}],"properties":[{"name":"altitude","property_id":7,"prop_type":{"scalar":"I32","nullable":true,"list":false,"enum_values":null},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"area","property_id":12,"prop_type":{"scalar":"F32","nullable":true,"list":false,"enum_values":null},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"code","property_id":5,"prop_type":{"scalar":"String","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":["key"],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"grade","property_id":6,"prop_type":{"scalar":"String","nullable":true,"list":false,"enum_values":["high","low"]},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]},{"name":"label","property_id":8,"prop_type":{"scalar":"String","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":["index"],"embed_source":null,"declared_directly":false,"satisfies_interface_properties":[{"owner_type_id":1,"owner_type_name":"Named","property_id":4,"property_name":"label"}]}],"constraints":[{"kind":"index","fields":[{"kind":"property","owner_type_id":2,"owner_type_name":"Place","property_id":8,"property_name":"label"}]},{"kind":"key","fields":[{"kind":"property","owner_type_id":2,"owner_type_name":"Place","property_id":5,"property_name":"code"}]},{"kind":"range","field":{"kind":"property","owner_type_id":2,"owner_type_name":"Place","property_id":7,"property_name":"altitude"},"min":{"Integer":0},"max":{"Integer":9000}}]}],"edges":[{"name":"Road","type_id":3,"table_incarnation_id":11,"from_type":{"type_id":2,"type_name":"Place"},"to_type":{"type_id":2,"type_name":"Place"},"cardinality":{"min":0,"max":4},"annotations":[],"properties":[{"name":"km","property_id":9,"prop_type":{"scalar":"F64","nullable":false,"list":false,"enum_values":null},"annotations":[],"property_constraints":[],"embed_source":null,"declared_directly":true,"satisfies_interface_properties":[]}],"constraints":[{"kind":"unique","fields":[{"kind":"system","stable_table_id":3,"table_type_name":"Road","table_incarnation_id":11,"role":"dst"},{"kind":"system","stable_table_id":3,"table_type_name":"Road","table_incarnation_id":11,"role":"src"}]}]}]}"#;

/// Vector 3.
const THREE: &str = r#"interface Named { title: String @index @description("shown") }
interface Tagged { tags: [String]?  title: String @description("shown") @index }
node Zed @owner("me", team="core", level=3) @beta implements Tagged, Named {
  code: String @key
  kind: enum(spot, area, line)
  score: F64?
  near: Vector(8)? @embed(title, model="m1") @index
  seen: DateTime? @unit(1.50)
  pic: Blob?
  @range(score, -1.5..2.0)
  @range(score, 0.00001..)
  @check(code, "^[a-z]+\\d$")
  @unique(score, kind)
}
node Alpha implements Named { k: I64 @key  title: String }
edge Links: Zed -> Alpha @card(1..5) @instruction("keep") {
  w: U32? @index
  @unique(w, src, dst)
}
"#;
const THREE_DOMAIN: &str = "01M8PK1TJBBTHFM9X03E2Y8XCZ";

/// Compact length and hash of shape and IR.
fn measures(ir: &SchemaIr) -> [(usize, String); 2] {
    let shape = ir.shape();
    [
        (shape.compact().len(), shape.shape_hash()),
        (ir.compact().len(), ir.ir_hash()),
    ]
}

fn hash(hex: &str) -> String {
    format!("sha256:{hex}")
}

/// Compile, resolve, and require that the IR's shape is the source's.
fn accept(source: &str, accepted: Option<&SchemaIr>, domain: &str, vintage: Vintage) -> SchemaIr {
    let compiled = compile(source, ParseMode::Tolerant, None).unwrap();
    let ir = resolve(&compiled, accepted, domain, vintage).unwrap();
    let shape = compiled.shape.respelled(vintage);
    assert_eq!(shape.compact(), ir.shape().compact());
    assert_eq!(SchemaIr::parse(&ir.pretty()).unwrap(), ir);
    ir
}

#[test]
fn vector_one_current() {
    let ir = accept(ONE, None, ONE_DOMAIN, Vintage::Current);
    assert_eq!((ir.ir_version, ir.next_identity_id), (5, 8));
    assert_eq!(
        measures(&ir),
        [
            (
                964,
                hash("05685a839c66fab66ec3e2b4e1e7d70dcbcdc84e95da0fef6af3f4a44a7f285a")
            ),
            (
                1577,
                hash("f0a6138469d78add40b8eb55155123321233837a41b0e10fc04d55a5bbebe368")
            ),
        ]
    );
}

#[test]
fn vector_one_legacy() {
    let bare = ONE
        .replace('@', "")
        .replace("String key", "String @key")
        .replace("unique", "@unique");
    for source in [ONE, &bare] {
        let ir = accept(source, None, ONE_DOMAIN, Vintage::Legacy);
        assert_eq!(ir.ir_version, 2);
        assert_eq!(
            measures(&ir),
            [
                (
                    962,
                    hash("1c0a8b674e2f3e219e9a84638cfcc7aeca54c13992ba0fb0c19bb0b48edb6863")
                ),
                (
                    1547,
                    hash("1e50972321ff3991a6d0ba00999752af0bcabaf40958473ad1895a203def9750")
                ),
            ]
        );
    }
}

#[test]
fn vector_two() {
    assert_eq!(TWO_APPLIED.len(), 299);
    let first = accept(TWO_INIT, None, TWO_DOMAIN, Vintage::Legacy);
    assert_eq!(first.next_identity_id, 12);
    assert_eq!(
        measures(&first),
        [
            (
                1821,
                hash("b7367ffa467de28ae95b2d8107145828b6027a44e52f05a2a1137ace9e6b9c59")
            ),
            (
                2740,
                hash("723a3b98367035ec441ffef37f9d87a9957e8b7cf513b18acd85a99d43574c8f")
            ),
        ]
    );
    let second = accept(TWO_APPLIED, Some(&first), TWO_DOMAIN, Vintage::Legacy);
    assert_eq!(second.shape().compact(), TWO_SHAPE);
    assert_eq!(second.compact(), TWO_IR);
    assert_eq!(second.pretty().len(), 5628);
    assert_eq!(
        measures(&second),
        [
            (
                2045,
                hash("cd06205cb2ee5cca03e0b60deb2629ed390a63749f775b184231e11ab1d97d7c")
            ),
            (
                2984,
                hash("a5d40f68358473b4d9868917c06dddb08408da6ca7d028a3d0070ecefabe0b75")
            ),
        ]
    );
    // A spent hint stays in the source and changes nothing.
    assert_eq!(
        accept(TWO_APPLIED, Some(&second), TWO_DOMAIN, Vintage::Legacy),
        second
    );
}

#[test]
fn vector_three() {
    assert_eq!(THREE.len(), 651);
    let ir = accept(THREE, None, THREE_DOMAIN, Vintage::Legacy);
    assert_eq!(ir.next_identity_id, 23);
    assert_eq!(ir.pretty().len(), 12865);
    assert_eq!(
        measures(&ir),
        [
            (
                4391,
                hash("34eda792bad143e75f41383f9c3340e651d4a873596f79653a12ff78d6681c35")
            ),
            (
                6572,
                hash("afcac185fecf1008e1809a023bd0652b793ca8bf93103e46642ccef1326088e2")
            ),
        ]
    );
    let keys = |constraints: &[ConstraintIr]| -> Vec<String> {
        constraints
            .iter()
            .map(|c| c.shape(Vintage::Legacy).sort_key())
            .collect()
    };
    assert_eq!(keys(&ir.nodes[0].constraints), ["key:k"]);
    assert_eq!(
        keys(&ir.nodes[1].constraints),
        [
            "check:code:^[a-z]+\\d$",
            "index:near",
            "index:title",
            "key:code",
            "range:score:Some(Float(-1.5)):Some(Float(2.0))",
            "range:score:Some(Float(1e-5)):None",
            "unique:kind,score",
        ]
    );
    assert_eq!(
        keys(&ir.edges[0].constraints),
        ["index:w", "unique:dst,src,w"]
    );
}
