//! The JSON of a report, every member of it, and its text.

use maintain::cleanup::{Report, human};
use serde_json::Value;

use super::support::*;

/// Sizes and places differ between graphs.
fn mask(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let size = (name.contains("bytes") || name == "objects") && member.is_u64();
                if size || matches!(name.as_str(), "uri" | "table_path" | "tree" | "dataset") {
                    *member = Value::from(format!("[{name}]"));
                } else {
                    mask(member);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn json_and_text() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        graph.branch("b", None).await;
        graph.branch("c", None).await;
        graph.delete_branch("c").await;
        graph.person(Some("b"), "bob", 1).await;
        let report = graph.preview(keep(1)).await;
        let mut json = serde_json::to_value(&report).unwrap();
        mask(&mut json);
        insta::assert_json_snapshot!("preview", json);
        let text = human::render(&report, "keep 1 versions");
        for words in [
            "node type 'Person'",
            "edge type 'Knows'",
            "__history",
            "would remove",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let done = graph.clean(keep(1)).await;
        let mut json = serde_json::to_value(&done).unwrap();
        mask(&mut json);
        insta::assert_json_snapshot!("confirm", json);
        assert!(human::summary(&done).starts_with("cleanup mode=confirm datasets=3 versions="));
        let members = |r: &Report| serde_json::to_string(r).unwrap().matches("\":").count();
        assert_eq!(members(&report), members(&done));
    });
}
