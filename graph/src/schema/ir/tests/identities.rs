//! Identity resolution (`docs/format/tables-and-schema.md` 5.4).

use super::*;

fn next(source: &str, accepted: &SchemaIr) -> SchemaIr {
    resolve(
        &compiled(source),
        Some(accepted),
        DOMAIN,
        accepted.vintage(),
    )
    .unwrap()
}

fn refused(source: &str, accepted: &SchemaIr) -> String {
    resolve(
        &compiled(source),
        Some(accepted),
        DOMAIN,
        accepted.vintage(),
    )
    .unwrap_err()
    .to_string()
}

#[test]
fn allocation_at_init() {
    let ir = everything(Vintage::Legacy);
    let types = [
        &ir.interfaces[0].type_id,
        &ir.interfaces[1].type_id,
        &ir.nodes[0].type_id,
        &ir.nodes[1].type_id,
        &ir.edges[0].type_id,
        &ir.edges[1].type_id,
    ];
    assert_eq!(types, [&1, &2, &3, &4, &5, &6]);
    assert_eq!(ir.interfaces[0].properties[0].property_id, 7);
    assert_eq!(ir.nodes[0].properties[0].name, "k");
    assert_eq!(ir.nodes[0].properties[0].property_id, 9);
    assert_eq!(ir.edges[0].properties[1].property_id, 18);
    let incarnations = [
        ir.nodes[0].table_incarnation_id,
        ir.nodes[1].table_incarnation_id,
        ir.edges[0].table_incarnation_id,
        ir.edges[1].table_incarnation_id,
    ];
    assert_eq!(incarnations, [19, 20, 21, 22]);
    assert_eq!(ir.next_identity_id, 23);
    // Hints have nothing to rename yet.
    let hinted = "node A @rename_from(\"Z\") { a: I32 @rename_from(\"z\") }";
    assert_eq!(
        initial(hinted, Vintage::Current),
        initial("node A { a: I32 }", Vintage::Current)
    );
}

#[test]
fn ids_are_kept_and_never_used_again() {
    let first = initial(
        "node A { a: I32 b: I32 } node B {} edge E: A -> B",
        Vintage::Legacy,
    );
    let dropped = next("node A { a: I32 }", &first);
    assert_eq!(dropped.nodes[0], {
        let mut node = first.nodes[0].clone();
        node.properties.pop();
        node
    });
    assert_eq!(dropped.next_identity_id, first.next_identity_id);
    let again = next(
        "node A { a: I32 b: I32 } node B {} edge E: A -> B",
        &dropped,
    );
    let n = first.next_identity_id;
    assert_eq!(again.nodes[1].type_id, n);
    assert_eq!(again.edges[0].type_id, n + 1);
    assert_eq!(again.nodes[0].properties[1].property_id, n + 2);
    assert_eq!(again.nodes[1].table_incarnation_id, n + 3);
    assert_eq!(again.edges[0].table_incarnation_id, n + 4);
    assert_eq!(again.edges[0].to_type.type_id, n);
    assert_eq!(again.next_identity_id, n + 5);
}

#[test]
fn renames_keep_ids() {
    let first = initial(
        "interface I { old: I32 } node A implements I { a: I32 } edge E: A -> A { w: I32 }",
        Vintage::Current,
    );
    let renamed = next(
        "interface I { new: I32 @rename_from(\"old\") }
         node B @rename_from(\"A\") implements I { b: I32 @rename_from(a) }
         edge F: B -> B @rename_from(\"E\") { v: I32 @rename_from(w) }",
        &first,
    );
    assert_eq!(renamed.next_identity_id, first.next_identity_id);
    let ids = |ir: &SchemaIr| {
        (
            ir.nodes[0].type_id,
            ir.nodes[0].table_incarnation_id,
            ir.edges[0].type_id,
            ir.edges[0].table_incarnation_id,
        )
    };
    assert_eq!(ids(&renamed), ids(&first));
    let property = |ir: &SchemaIr, name: &str| {
        let all = ir.nodes[0].properties.iter().chain(&ir.edges[0].properties);
        all.chain(&ir.interfaces[0].properties)
            .find(|p| p.name == name)
            .unwrap()
            .property_id
    };
    assert_eq!(property(&renamed, "b"), property(&first, "a"));
    assert_eq!(property(&renamed, "new"), property(&first, "old"));
    assert_eq!(property(&renamed, "v"), property(&first, "w"));
    assert_eq!(
        renamed.interfaces[0].properties[0].property_id,
        first.interfaces[0].properties[0].property_id
    );
    // Two types that name each other swap nothing: both names are still accepted.
    let two = initial("node A {} node B {}", Vintage::Current);
    assert_eq!(
        next(
            "node A @rename_from(\"B\") {} node B @rename_from(\"A\") {}",
            &two
        ),
        two
    );
    // A new node that implements the interface never had the old name.
    let joined = next(
        "interface I { new: I32 @rename_from(\"old\") } node A implements I { a: I32 } node C implements I {}
         edge E: A -> A { w: I32 }",
        &first,
    );
    assert_eq!(joined.nodes[1].name, "C");
}

#[test]
fn hints_that_do_not_fit_are_refused() {
    let first = initial("node A { a: I32 b: I32 } edge E: A -> A", Vintage::Current);
    for (source, expected) in [
        (
            "node B @rename_from(\"X\") { a: I32 }",
            "no node of that name",
        ),
        ("node B @rename_from(\"E\") {}", "no node of that name"),
        (
            "node A { a: I32 b: I32 } edge F: A -> A @rename_from(\"A\")",
            "no edge of that name",
        ),
        (
            "node A { a: I32 b: I32 } node B @rename_from(\"A\") {}",
            "still declares",
        ),
        (
            "node B @rename_from(\"A\") {} node C @rename_from(\"A\") {}",
            "another declaration",
        ),
        (
            "node A { c: I32 @rename_from(x) }",
            "no property of that name",
        ),
        ("node A { a: I32 c: I32 @rename_from(a) }", "still declares"),
        (
            "node A { c: I32 @rename_from(a) d: I32 @rename_from(a) }",
            "another property",
        ),
        (
            "node A { a: I32 } node N { a: I32 @rename_from(b) }",
            "no property of that name",
        ),
    ] {
        let error = refused(source, &first);
        assert!(error.contains(expected), "{source}: {error}");
    }
}

#[test]
fn spelling_follows_the_vintage() {
    let bare = compiled("node A {} edge E: A -> A { @unique(src, dst) }");
    assert!(resolve(&bare, None, DOMAIN, Vintage::Current).is_err());
    let legacy = resolve(&bare, None, DOMAIN, Vintage::Legacy).unwrap();
    assert_eq!((legacy.ir_version, legacy.features.len()), (2, 0));
    // The system-column upgrade: same ids, endpoints respelled.
    let meta = compiled("node A {} edge E: A -> A { @unique(@src, @dst) }");
    let upgraded = resolve(&meta, Some(&legacy), DOMAIN, Vintage::Current).unwrap();
    assert_eq!(upgraded.edges, legacy.edges);
    assert_eq!(upgraded.ir_version, 5);
    assert_eq!(upgraded.vintage(), Vintage::Current);
    // `_a` is a fine name in one vintage only.
    let underscore = compiled("node A { _a: I32 }");
    resolve(&underscore, None, DOMAIN, Vintage::Legacy).unwrap();
    assert!(resolve(&underscore, None, DOMAIN, Vintage::Current).is_err());
}

#[test]
fn features_and_version_are_derived() {
    let key = "node A {} edge E: A -> A { @key(@src, @dst) }";
    let features = |ir: &SchemaIr| ir.features.iter().cloned().collect::<Vec<_>>().join(",");
    let legacy = initial(key, Vintage::Legacy);
    assert_eq!(
        (legacy.ir_version, features(&legacy).as_str()),
        (5, "edge-keys")
    );
    let current = initial(key, Vintage::Current);
    assert_eq!(
        (current.ir_version, features(&current).as_str()),
        (5, "edge-keys,system-columns")
    );
    assert!(current.compact().starts_with(
        r#"{"ir_version":5,"features":["edge-keys","system-columns"],"schema_identity_domain""#
    ));
}

#[test]
fn bounds_of_the_allocator_and_the_domain() {
    let mut full = initial("node A {}", Vintage::Legacy);
    full.next_identity_id = u64::MAX;
    assert!(refused("node A { a: I32 }", &full).contains("used up"));
    next("node A {}", &full);
    full.next_identity_id = u64::MAX - 1;
    assert_eq!(
        next("node A { a: I32 }", &full).nodes[0].properties[0].property_id,
        u64::MAX - 1
    );
    let other = resolve(
        &compiled("node A {}"),
        Some(&full),
        "01M8PK6329VC5DRE8X1YH9472S",
        Vintage::Legacy,
    );
    assert!(other.unwrap_err().to_string().contains("identity domain"));
    for bad in ["", "01arz3ndektsv4rrffq69g5fav"] {
        let error = resolve(&compiled(""), None, bad, Vintage::Current).unwrap_err();
        assert!(error.to_string().contains("no canonical ULID"));
    }
}

#[test]
fn implements_and_links_follow_identity_not_name() {
    let first = initial(
        "interface B { x: I32 } node N implements B {}",
        Vintage::Current,
    );
    // An interface declared later has the greater id and the smaller name.
    let second = next(
        "interface A { x: I32 } interface B { x: I32 } node N implements B {} node M implements A, B {}",
        &first,
    );
    let m = &second.nodes[0];
    let names: Vec<_> = m.implements.iter().map(|t| t.type_name.as_str()).collect();
    assert_eq!(names, ["B", "A"]);
    let links: Vec<_> = m.properties[0]
        .satisfies_interface_properties
        .iter()
        .map(|l| l.owner_type_name.as_str())
        .collect();
    assert_eq!(links, ["B", "A"]);
    let shape = second.shape();
    assert_eq!(shape.nodes[0].implements, ["A", "B"]);
    assert_eq!(
        shape.nodes[0].properties[0].satisfies_interface_properties[0].owner_name,
        "A"
    );
}
