//! Staging copies of the schema without a sidecar that explains them.

use std::collections::BTreeSet;
use std::path::Path;

use recover::Report;
use recover::report::Outcome;

use crate::support::edit::*;
use crate::support::*;

/// Take the sidecar of a staged schema away and stage a schema with one more type.
pub fn stage_alone(root: &Path) {
    std::fs::remove_file(only_sidecar(root)).unwrap();
    let staged = root.join("_schema.pg.staging");
    let text = std::fs::read_to_string(&staged).unwrap();
    std::fs::write(
        &staged,
        format!("{text}\nnode Extra {{\n  note: String\n}}\n"),
    )
    .unwrap();
}

#[test]
fn staged_schemas_without_a_sidecar() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        use recover::leftover::StagingDecision as D;
        let decided = |report: &Report| report.staging.as_ref().map(|s| s.decision);
        // A property more: the types are the same, so nothing tells.
        let root = stopped(&archives, "sc-schema-staged");
        std::fs::remove_file(only_sidecar(root.path())).unwrap();
        let report = confirm(root.path()).await;
        assert_eq!(
            (decided(&report), report.outcome),
            (Some(D::Refuse), Outcome::Refused)
        );

        // The source was promoted already, and the rest fits it.
        let to = |name: &str| root.path().join(name);
        std::fs::rename(to("_schema.pg.staging"), to("_schema.pg")).unwrap();
        let report = confirm(root.path()).await;
        assert_eq!(
            (decided(&report), report.outcome),
            (Some(D::Promote), Outcome::Recovered)
        );
        let theirs = twin(&archives, "sc-schema-staged");
        let schema = left(root.path(), &BTreeSet::new()).await.schema;
        assert_eq!(schema, left(theirs.path(), &BTreeSet::new()).await.schema);

        // The very schema that is live.
        std::fs::copy(to("_schema.pg"), to("_schema.pg.staging")).unwrap();
        let report = confirm(root.path()).await;
        assert_eq!(
            (decided(&report), report.outcome),
            (Some(D::Discard), Outcome::Recovered)
        );
        assert_eq!(confirm(root.path()).await.outcome, Outcome::Clean);

        // A type more that the catalog does not show.
        let root = stopped(&archives, "sc-schema-staged");
        stage_alone(root.path());
        let report = check(root.path()).await;
        assert_eq!(
            (decided(&report), report.outcome),
            (Some(D::Discard), Outcome::Pending),
            "{report:#?}"
        );
        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Recovered);
        let schema = left(root.path(), &BTreeSet::new()).await.schema;
        assert!(!schema.keys().any(|k| k.ends_with(".staging")));

        // Text that is no schema.
        std::fs::write(root.path().join("_schema.pg.staging"), "x").unwrap();
        let report = confirm(root.path()).await;
        assert_eq!(
            (decided(&report), report.outcome),
            (Some(D::Refuse), Outcome::Refused)
        );
    });
}

#[test]
fn a_schema_apply_without_tables() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for confirmed in [true, false] {
            let root = stopped(&archives, "sc-schema-staged");
            let file = only_sidecar(root.path());
            edit(&file, |v| {
                if !confirmed {
                    disarm(v);
                }
                for place in [
                    "/tables",
                    "/protocol_v7/effects",
                    "/protocol_v7/intended_delta/table_updates",
                ] {
                    v.pointer_mut(place)
                        .unwrap()
                        .as_array_mut()
                        .unwrap()
                        .clear();
                }
            });
            let before = left(root.path(), &BTreeSet::new()).await;
            let report = confirm(root.path()).await;
            assert_eq!(report.outcome, Outcome::Recovered, "{report:#?}");
            let after = left(root.path(), &BTreeSet::new()).await;
            assert_eq!(after.pins, before.pins, "no table changes");
            assert_eq!(
                after.commits["main"].len(),
                before.commits["main"].len() + 1
            );
            let word = if confirmed {
                "RolledForward"
            } else {
                "RolledBack"
            };
            assert_eq!(after.audit.len(), 1);
            assert!(
                after.audit[0].starts_with(word) && after.audit[0].ends_with("[]"),
                "{after:#?}"
            );
            let live = |left: &Left| left.schema["_schema.pg"].clone();
            let staged = &before.schema["_schema.pg.staging"];
            assert_eq!(live(&after) == *staged, confirmed);
            assert!(!after.schema.keys().any(|k| k.ends_with(".staging")));
        }
    });
}
