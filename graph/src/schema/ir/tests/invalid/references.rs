//! Provenance, references and keys.

use super::*;

#[test]
fn provenance_and_links() {
    all_refused(
        Vintage::Legacy,
        &[
            (
                |ir| ir.interfaces[0].properties[0].declared_directly = false,
                "provenance of a node's",
            ),
            (
                |ir| {
                    let link = property(ir, 0, "title").satisfies_interface_properties[0].clone();
                    ir.interfaces[0].properties[0]
                        .satisfies_interface_properties
                        .push(link);
                },
                "provenance of a node's",
            ),
            (
                |ir| property(ir, 1, "score").declared_directly = false,
                "injected, but by no interface",
            ),
            (
                |ir| ir.edges[0].properties[0].declared_directly = false,
                "provenance of an interface's",
            ),
            (
                |ir| {
                    let link = property(ir, 0, "title").satisfies_interface_properties[0].clone();
                    ir.edges[0].properties[0]
                        .satisfies_interface_properties
                        .push(link);
                },
                "provenance of an interface's",
            ),
            (
                |ir| {
                    ir.edges[0].properties[0].embed_source =
                        property(ir, 1, "near").embed_source.clone()
                },
                "embeds another",
            ),
            (
                |ir| {
                    property(ir, 0, "title").embed_source =
                        property(ir, 1, "near").embed_source.clone()
                },
                "@embed: 'title' is said to be of Zed",
            ),
            (
                |ir| {
                    property(ir, 1, "near")
                        .embed_source
                        .as_mut()
                        .unwrap()
                        .source
                        .property_name = "code".into()
                },
                "@embed: 'code'",
            ),
            (
                |ir| {
                    let links = &mut property(ir, 1, "title").satisfies_interface_properties;
                    links.push(links[0].clone());
                },
                "links are not strictly ascending",
            ),
            (
                |ir| {
                    let link = property(ir, 1, "tags").satisfies_interface_properties[0].clone();
                    property(ir, 0, "title")
                        .satisfies_interface_properties
                        .push(link);
                },
                "of no interface that the node implements",
            ),
            (
                |ir| {
                    property(ir, 1, "title").satisfies_interface_properties[0].owner_type_name =
                        "Tagged".into()
                },
                "of no interface that the node implements",
            ),
            (
                |ir| {
                    property(ir, 1, "title").satisfies_interface_properties[0].property_name =
                        "t".into()
                },
                "whose id is that of 'title'",
            ),
            (
                |ir| property(ir, 1, "title").satisfies_interface_properties[0].property_id = 8,
                "which does not exist",
            ),
            (
                |ir| property(ir, 0, "title").prop_type.nullable = true,
                "but is String? and not String",
            ),
            (
                |ir| {
                    property(ir, 0, "title")
                        .satisfies_interface_properties
                        .clear()
                },
                "nothing satisfies Named.title",
            ),
            (
                |ir| ir.nodes[0].implements[0].type_name = "Nemed".into(),
                "no interface of that name and id",
            ),
            (
                |ir| ir.nodes[0].implements[0].type_id = 99,
                "no interface of that name and id",
            ),
        ],
    );
}

#[test]
fn references() {
    all_refused(
        Vintage::Legacy,
        &[
            (
                |ir| ir.edges[0].from_type.type_id = 1,
                "no node type of that name and id",
            ),
            (
                |ir| ir.edges[0].to_type.type_name = "Zed".into(),
                "no node type of that name and id",
            ),
            (
                |ir| ir.nodes[1].constraints.swap(0, 1),
                "constraints are not strictly ascending",
            ),
            (
                |ir| {
                    let twice = ir.nodes[0].constraints[0].clone();
                    ir.nodes[0].constraints.push(twice);
                },
                "'key:k' follows 'key:k'",
            ),
            (
                |ir| property_field(&mut ir.nodes[0].constraints[0]).owner_type_id = 4,
                "said to be of",
            ),
            (
                |ir| property_field(&mut ir.nodes[0].constraints[0]).owner_type_name = "Zed".into(),
                "said to be of",
            ),
            (
                |ir| property_field(&mut ir.nodes[0].constraints[0]).property_id = 10,
                "no property of that name",
            ),
            (
                |ir| property_field(&mut ir.nodes[0].constraints[0]).property_name = "z".into(),
                "no property of that name",
            ),
            (
                |ir| system_field(ir).stable_table_id = 6,
                "system column 'dst' is said to be of",
            ),
            (
                |ir| system_field(ir).table_incarnation_id = 22,
                "system column 'dst' is said to be of",
            ),
            (
                |ir| system_field(ir).table_type_name = "Other".into(),
                "system column 'dst' is said to be of",
            ),
            (
                |ir| {
                    let role = FieldRef::System(SystemRef {
                        stable_table_id: 3,
                        table_type_name: "Alpha".into(),
                        table_incarnation_id: 19,
                        role: SystemRole::Src,
                    });
                    ir.nodes[0]
                        .constraints
                        .push(ConstraintIr::Unique { fields: vec![role] });
                },
                "a node has no system column 'src'",
            ),
        ],
    );
}

#[test]
fn keys_a_runtime_cannot_use() {
    let mut node = initial("node A { a: I32 @key }", Vintage::Current);
    *fields(&mut node.nodes[0].constraints[0]) = Vec::new();
    assert!(
        node.validate()
            .unwrap_err()
            .to_string()
            .contains("the key is empty")
    );
    let id = FieldRef::System(SystemRef {
        stable_table_id: 1,
        table_type_name: "A".into(),
        table_incarnation_id: 3,
        role: SystemRole::Id,
    });
    *fields(&mut node.nodes[0].constraints[0]) = vec![id];
    assert!(
        node.validate()
            .unwrap_err()
            .to_string()
            .contains("names a system column")
    );

    let edge = initial(
        "node A {} edge E: A -> A { @key(@src, @dst) }",
        Vintage::Current,
    );
    let mut short = edge.clone();
    fields(&mut short.edges[0].constraints[0]).pop();
    assert!(
        short
            .validate()
            .unwrap_err()
            .to_string()
            .contains("lacks an endpoint")
    );
    let mut twice = edge.clone();
    let members = fields(&mut twice.edges[0].constraints[0]);
    members.push(members[0].clone());
    assert!(
        twice
            .validate()
            .unwrap_err()
            .to_string()
            .contains("repeats a member")
    );
    let mut with_id = edge;
    let members = fields(&mut with_id.edges[0].constraints[0]);
    if let FieldRef::System(mut system) = members[0].clone() {
        system.role = SystemRole::Id;
        members.push(FieldRef::System(system));
    }
    assert!(
        with_id
            .validate()
            .unwrap_err()
            .to_string()
            .contains("names the id")
    );
}
