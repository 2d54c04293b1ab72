use graph::model::table::TableKind;
use graph::schema::types::Cardinality;
use graph::schema::{SystemRole, Vintage};

use super::*;

const SOURCE: &str = "
node Person { name: String @key email: String? @unique age: I32? photo: Blob? }
node City { name: String region: I64 code: I64 @key(region, code) }
edge LivesIn: Person -> City @card(0..1) { since: Date? @unique(@src, since) }
edge Knows: Person -> Person { kind: String @key(@dst, kind, @src) }
";

#[test]
fn tables_ascend_by_key_and_endpoints_point_at_nodes() {
    let types = types(SOURCE, Vintage::Current);
    let keys: Vec<_> = types
        .tables()
        .iter()
        .map(|t| t.table_key.as_str())
        .collect();
    assert_eq!(
        keys,
        ["edge:Knows", "edge:LivesIn", "node:City", "node:Person"]
    );
    let kinds: Vec<_> = types.tables().iter().map(|t| t.kind).collect();
    use TableKind::{Edge, Node};
    assert_eq!(kinds, [Edge, Edge, Node, Node]);
    let ends: Vec<_> = types.tables().iter().map(|t| t.endpoints).collect();
    assert_eq!(ends, [Some((3, 3)), Some((3, 2)), None, None]);
    let max_one = Cardinality {
        min: 0,
        max: Some(1),
    };
    assert_eq!(types.tables()[1].cardinality, Some(max_one));
    assert_eq!(types.tables()[3].cardinality, None);
    assert_eq!(types.vintage(), Vintage::Current);
    let ids: Vec<_> = types.tables().iter().map(|t| t.identity).collect();
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn look_ups() {
    let types = types(SOURCE, Vintage::Current);
    assert_eq!(types.node("City"), Some(2));
    assert_eq!(types.node("city"), None);
    assert_eq!(types.node("Knows"), None);
    assert_eq!(types.edge("LivesIn"), Some(1));
    assert_eq!(types.edge("livesIN"), Some(1));
    assert_eq!(types.edge("City"), None);
    assert_eq!(types.by_key("node:Person"), Some(3));
    assert_eq!(types.by_key("edge:livesin"), None);
    let person = &types.tables()[3];
    assert_eq!(person.property("email"), Some(1));
    assert_eq!(person.property("id"), None);
}

#[test]
fn members_of_constraints() {
    use Member::{Property, System};
    use SystemRole::{Dst, Src};
    let types = types(SOURCE, Vintage::Current);
    let [knows, lives, city, person] = types.tables() else {
        panic!("four tables");
    };
    assert_eq!(knows.key, Some(vec![System(Src), System(Dst), Property(0)]));
    assert_eq!(lives.key, None);
    // By name `code` comes first, and its id is the lower one too: properties are numbered by name.
    assert_eq!(city.key, Some(vec![Property(0), Property(2)]));
    assert_eq!(person.key, Some(vec![Property(2)]));
    assert_eq!(person.unique, [vec![Property(1)]]);
    assert_eq!(lives.unique, [vec![System(Src), Property(0)]]);
    assert_eq!(lives.column(System(Src)).unwrap(), "__src");
    assert_eq!(lives.column(Property(0)).unwrap(), "since");
    assert!(lives.column(Property(1)).is_err());
    assert!(person.properties[3].is_blob() && !person.properties[2].is_blob());
}

#[test]
fn columns_are_those_of_the_vintage() {
    for (vintage, columns) in [
        (Vintage::Legacy, ["id", "src", "dst", "since"]),
        (Vintage::Current, ["__id", "__src", "__dst", "since"]),
    ] {
        let source = "node N { a: I32? } edge E: N -> N { since: Date? }";
        let types = types(source, vintage);
        let schema = &types.tables()[0].schema;
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, columns);
    }
}

#[test]
fn a_check_that_is_no_pattern_is_refused() {
    // The graph can be read; only what the pattern would judge is refused, and a new schema is.
    let types = try_types("node N { a: String? @check(a, \"[a\") }", Vintage::Current).unwrap();
    let error = types.require_patterns().unwrap_err();
    assert!(matches!(error, graph::Error::Refused(_)));
    assert_eq!(
        error.to_string(),
        "node:N: property a: the @check pattern \"[a\" is no regular expression: unclosed character class"
    );
}

#[test]
fn an_ir_that_contradicts_itself_is_internal() {
    use graph::schema::ir::{ConstraintIr, FieldRef};
    let compiled = compile(SOURCE, ParseMode::Admission, Some(Vintage::Current)).unwrap();
    let ir = resolve(&compiled, None, DOMAIN, Vintage::Current).unwrap();
    let broken = |change: &dyn Fn(&mut graph::schema::SchemaIr)| {
        let mut ir = ir.clone();
        change(&mut ir);
        let error = Types::of(&ir).unwrap_err();
        assert!(matches!(error, graph::Error::Internal(_)), "{error}");
        error.to_string()
    };
    let lost = broken(&|ir| ir.nodes[1].properties[1].property_id = 9999);
    assert_eq!(
        lost,
        "node:Person: a constraint names the property email, which does not exist"
    );
    let endpoint = broken(&|ir| ir.edges[0].to_type.type_id = 9999);
    assert_eq!(
        endpoint,
        "edge:Knows: the endpoint type Person does not exist"
    );
    let key = broken(&|ir| {
        for constraint in &mut ir.edges[0].constraints {
            if let ConstraintIr::Key { fields } = constraint {
                fields.retain(|f| !matches!(f, FieldRef::System(s) if s.role == SystemRole::Dst));
            }
        }
    });
    assert_eq!(
        key,
        "edge:Knows: the key is not one tuple of scalars, with both endpoints first on an edge"
    );
}
