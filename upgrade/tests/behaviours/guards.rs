//! Behaviours 48 and 49: the stamp guard of every open, and the listing of sidecars.

use fixtures::damage::objects::remove;
use fixtures::legacy_writer::set_metadata;
use graph::manifest::scan::open_branch;
use graph::stamp::STAMP_KEY;
use upgrade::Outcome;

use crate::support::*;

async fn restamped(case: &Case, stamp: &str) -> String {
    let root = case.root().await;
    let head = root.open_manifest(None, None).await.unwrap();
    set_metadata(&root, &head.dataset, &[(STAMP_KEY, Some(stamp.into()))])
        .await
        .unwrap();
    open_branch(&root, None).await.unwrap_err().to_string()
}

#[test]
fn b48_only_stamp_14_is_served() {
    run(|| async {
        let flat = Kind::S9.copy().await;
        for stamp in ["8", "9", "13"] {
            let refusal = restamped(&flat, stamp).await;
            let command = format!("omnigraph upgrade {}", flat.uri());
            says(
                &refusal,
                &[&format!("{command} --check"), "cluster", "back up"],
            );
        }
        for stamp in ["0", "1", "2", "3", "4", "5", "6", "7", "10", "11", "12"] {
            let refusal = restamped(&flat, stamp).await;
            says(&refusal, &["omnigraph export"]);
            assert!(!refusal.contains("omnigraph upgrade"), "{refusal}");
            let refused = Refused {
                code: "unsupported_source",
                route: None,
                identity: false,
                says: &[&refusal],
                recovery: None,
            };
            refused.by(&flat).await;
        }
        let refusal = restamped(&flat, "15").await;
        says(&refusal, &["newer"]);
        let mut refused = Refused {
            code: "newer_than_binary",
            route: None,
            identity: false,
            says: &[&refusal],
            recovery: None,
        };
        assert_eq!(refused.by(&flat).await.observed_format, Some(15));
        let refusal = restamped(&flat, "nine").await;
        refused.code = "unsupported_source";
        refused.says = &["'nine'"];
        assert!(refusal.contains("'nine'"));
        assert_eq!(refused.by(&flat).await.observed_format, None);
    });
}

#[test]
fn b48_no_stamp_is_a_torn_init() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let root = case.root().await;
        let head = root.open_manifest(None, None).await.unwrap();
        set_metadata(&root, &head.dataset, &[(STAMP_KEY, None)])
            .await
            .unwrap();
        Refused {
            code: "unsupported_source",
            route: None,
            identity: false,
            says: &["no stamp"],
            recovery: None,
        }
        .by(&case)
        .await;
    });
}

#[test]
fn b49_a_recovery_folder_that_is_absent_or_free_of_json_is_clean() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let folder = case.path().join("__recovery");
        let _ = std::fs::remove_dir_all(&folder);
        assert_eq!(case.check().await.outcome, Outcome::CheckPassed);
        std::fs::create_dir_all(folder.join("deeper")).unwrap();
        for name in ["note.txt", "x.json.bak", "deeper/y.json"] {
            std::fs::write(folder.join(name), "{}").unwrap();
        }
        assert_eq!(case.check().await.outcome, Outcome::CheckPassed);
        for name in ["b.json", "a.json", "c.json"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        says(message(&case.check().await), &["3 ", "a, b, c"]);
        for name in ["b.json", "a.json", "c.json"] {
            remove(&case.path(), &format!("__recovery/{name}")).unwrap();
        }
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
    });
}
