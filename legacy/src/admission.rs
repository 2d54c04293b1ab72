//! Whether one `__manifest` version may be read, and as which stamp
//! (`docs/format/legacy-manifest.md` 5). A pure function over what the version says about itself.

use arrow_schema::Schema;
use graph::stamp::{PENDING_KEY, STAMP_KEY, StampReading};
use graph::store::ManifestVersion;
use lance_table::format::Manifest;
use serde::Deserialize;

use crate::shape::Shape;

/// What a version is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The head of a ref to convert.
    LiveHead,
    /// The head of a retired ref.
    RetiredHead,
    /// An older version of any ref.
    Retained,
}

/// The stamp a version's rows are read as; 1 is an unstamped bootstrap version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdmittedStamp(u32);

impl AdmittedStamp {
    /// The stamp.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The shape the rows have.
    pub fn shape(self) -> Shape {
        Shape::of_stamp(self.0)
    }
}

/// Oldest stamp a retained version may carry.
const OLDEST_RETAINED: u32 = 6;
/// Oldest stamp the head of a retired ref may carry: retirement exists from stamp 8.
const OLDEST_RETIRED: u32 = 8;
/// Versions that release 0.9.x wrote before its first stamp.
const UNSTAMPED_VERSIONS: [u64; 2] = [1, 2];
/// What rows of an unstamped version are read as.
const UNSTAMPED: u32 = 1;
/// (protocol, source, target) of every upgrade route that can have left versions on main.
const EARLIER_ROUTES: [(u32, u32, u32); 7] = [
    (1, 6, 7),
    (2, 7, 8),
    (3, 8, 10),
    (3, 9, 10),
    (4, 10, 11),
    (5, 11, 13),
    (5, 12, 13),
];

/// What admission looks at, as plain data.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The stamp key.
    pub stamp: StampReading,
    /// Raw value of the pending key.
    pub pending: Option<String>,
    /// Lance version number.
    pub version: u64,
    /// Whether the Lance manifest names no branch.
    pub on_main: bool,
    /// Stored shape, `None` when it is none of the known ones.
    pub shape: Option<Shape>,
}

impl Candidate {
    /// Collect what admission looks at from an opened version.
    pub fn of(version: &ManifestVersion) -> Self {
        Self::of_manifest(version.dataset.manifest())
    }

    /// Collect it from a manifest that was read by itself.
    pub fn of_manifest(manifest: &Manifest) -> Self {
        let schema = &manifest.schema;
        Self {
            stamp: StampReading::of_schema(schema),
            pending: schema.metadata.get(PENDING_KEY).cloned(),
            version: manifest.version,
            on_main: manifest.branch.is_none(),
            shape: Shape::of(&Schema::from(schema)),
        }
    }
}

/// Why a version is not admitted. The text does not name the version; callers do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    /// An upgrade is in flight on a head.
    #[error(
        "it carries the key {PENDING_KEY}: a storage upgrade was started here and not finished"
    )]
    Pending,
    /// The stamp is no decimal number.
    #[error("its stamp ({STAMP_KEY}) is '{0}', expected a decimal number")]
    NotANumber(String),
    /// The stamp is absent where one is required.
    #[error("it has no stamp ({STAMP_KEY}), expected {0}")]
    Unstamped(String),
    /// The stamp is outside what the role admits.
    #[error("it has stamp {found}, expected {expected}")]
    Stamp {
        /// What it carries.
        found: u32,
        /// What the role admits, in words.
        expected: String,
    },
    /// The rows are not stored as that stamp stores them.
    #[error("it is read as stamp {stamp}, which stores {expected}, but its columns are not those")]
    Shape {
        /// The stamp it would be read as.
        stamp: u32,
        /// Shape of that stamp.
        expected: Shape,
    },
    /// The version was left by an earlier upgrade that this build cannot place.
    #[error("it carries the key {PENDING_KEY} of an earlier storage upgrade, but {0}")]
    EarlierRoute(String),
}

/// Decide whether a version is admitted under a root whose live heads carry `live`, and as which
/// stamp its rows are read. The checks run in the order of the format text, so that the first cause
/// is the one reported.
pub fn admit(candidate: &Candidate, role: Role, live: u32) -> Result<AdmittedStamp, RefusalReason> {
    if candidate.pending.is_some() && role != Role::Retained {
        return Err(RefusalReason::Pending);
    }
    let found = match &candidate.stamp {
        StampReading::NotANumber(text) => return Err(RefusalReason::NotANumber(text.clone())),
        StampReading::Absent => None,
        StampReading::Number(n) => Some(*n),
    };
    if let Some(pending) = &candidate.pending {
        return earlier_route(candidate, pending, found, live);
    }
    let admitted = by_role(role, found, candidate.version, live)?;
    let expected = Shape::of_stamp(admitted);
    if candidate.shape == Some(expected) {
        Ok(AdmittedStamp(admitted))
    } else {
        Err(RefusalReason::Shape {
            stamp: admitted,
            expected,
        })
    }
}

/// The role table.
fn by_role(role: Role, found: Option<u32>, version: u64, live: u32) -> Result<u32, RefusalReason> {
    let oldest = match role {
        Role::LiveHead => live,
        Role::RetiredHead => OLDEST_RETIRED,
        Role::Retained => OLDEST_RETAINED,
    };
    let expected = || {
        if oldest == live {
            format!("stamp {live}")
        } else {
            format!("a stamp from {oldest} to {live}")
        }
    };
    match found {
        Some(stamp) if (oldest..=live).contains(&stamp) => Ok(stamp),
        Some(found) => Err(RefusalReason::Stamp {
            found,
            expected: expected(),
        }),
        None if role == Role::Retained && UNSTAMPED_VERSIONS.contains(&version) => Ok(UNSTAMPED),
        None => Err(RefusalReason::Unstamped(expected())),
    }
}

/// Fence and conversion versions that a completed earlier upgrade left on main.
fn earlier_route(
    candidate: &Candidate,
    pending: &str,
    found: Option<u32>,
    live: u32,
) -> Result<AdmittedStamp, RefusalReason> {
    #[derive(Deserialize)]
    struct Route {
        protocol: u32,
        source_format: u32,
        target_format: u32,
    }
    let refuse = |why: String| Err(RefusalReason::EarlierRoute(why));
    let route: Route = match serde_json::from_str(pending) {
        Ok(route) => route,
        Err(e) => return refuse(format!("its value cannot be read: {e}")),
    };
    let (source, target) = (route.source_format, route.target_format);
    let named = format!(
        "protocol {} from stamp {source} to {target}",
        route.protocol
    );
    if !EARLIER_ROUTES.contains(&(route.protocol, source, target)) {
        return refuse(format!("no release had a route of {named}"));
    }
    if target > live {
        return refuse(format!("{named} leads above the live stamp {live}"));
    }
    if found != Some(target) {
        let found = found.map_or("no stamp".to_string(), |n| format!("stamp {n}"));
        return refuse(format!("the version has {found} under {named}"));
    }
    if !candidate.on_main {
        return refuse(format!("the version is not on main ({named})"));
    }
    // A fence changes metadata over unchanged rows, so rows of the source shape carry the target stamp.
    match candidate.shape {
        Some(shape) if shape == Shape::of_stamp(target) => Ok(AdmittedStamp(target)),
        Some(shape) if shape == Shape::of_stamp(source) => Ok(AdmittedStamp(source)),
        _ => refuse(format!("its columns are those of neither stamp of {named}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use Role::{LiveHead, Retained, RetiredHead};
    use proptest::prelude::*;

    fn plain(stamp: Option<&str>, version: u64, shape: Option<Shape>) -> Candidate {
        Candidate {
            stamp: StampReading::parse(stamp),
            pending: None,
            version,
            on_main: true,
            shape,
        }
    }

    fn route(protocol: u32, source: u32, target: u32) -> String {
        format!(
            r#"{{"protocol":{protocol},"source_format":{source},"target_format":{target},"attempt":"x"}}"#
        )
    }

    fn fenced(stamp: u32, pending: &str, shape: Shape) -> Candidate {
        Candidate {
            pending: Some(pending.to_string()),
            ..plain(Some(&stamp.to_string()), 7, Some(shape))
        }
    }

    #[test]
    fn role_table() {
        let flat = Some(Shape::Flat);
        for live in [8_u32, 9] {
            for stamp in 0..=15_u32 {
                let candidate = plain(Some(&stamp.to_string()), 5, flat);
                for (role, oldest) in [(LiveHead, live), (RetiredHead, 8), (Retained, 6)] {
                    let got = admit(&candidate, role, live).map(AdmittedStamp::get);
                    if (oldest..=live).contains(&stamp) {
                        assert_eq!(got, Ok(stamp), "{role:?} {stamp} under {live}");
                    } else {
                        assert!(
                            matches!(got, Err(RefusalReason::Stamp { found, .. }) if found == stamp),
                            "{role:?} {stamp} under {live}: {got:?}"
                        );
                    }
                }
            }
        }
        for stamp in 6..=13_u32 {
            let candidate = plain(Some(&stamp.to_string()), 5, Some(Shape::of_stamp(stamp)));
            assert_eq!(admit(&candidate, Retained, 13), Ok(AdmittedStamp(stamp)));
            assert_eq!(admit(&candidate, RetiredHead, 13).is_ok(), stamp >= 8);
            assert_eq!(admit(&candidate, LiveHead, 13).is_ok(), stamp == 13);
        }
    }

    #[test]
    fn unstamped_only_as_the_first_two_retained_versions() {
        for (version, role, ok) in [
            (1, Retained, true),
            (2, Retained, true),
            (3, Retained, false),
            (0, Retained, false),
            (1, LiveHead, false),
            (2, RetiredHead, false),
        ] {
            let got = admit(&plain(None, version, Some(Shape::Flat)), role, 9);
            assert_eq!(got.is_ok(), ok, "{version} {role:?}");
            if ok {
                assert_eq!(got.map(AdmittedStamp::get), Ok(1));
            } else {
                assert!(matches!(got, Err(RefusalReason::Unstamped(_))));
            }
        }
        let packed = admit(&plain(None, 1, Some(Shape::Packed12)), Retained, 9);
        assert!(matches!(packed, Err(RefusalReason::Shape { stamp: 1, .. })));
    }

    #[test]
    fn the_shape_must_be_the_stamps() {
        for (stamp, shape, ok) in [
            (9, Some(Shape::Flat), true),
            (9, Some(Shape::Packed12), false),
            (9, None, false),
            (12, Some(Shape::Packed12), true),
            (12, Some(Shape::Packed13), false),
            (12, Some(Shape::Flat), false),
            (13, Some(Shape::Packed13), true),
            (13, Some(Shape::Packed12), false),
        ] {
            let got = admit(&plain(Some(&stamp.to_string()), 4, shape), Retained, 13);
            assert_eq!(got.is_ok(), ok, "{stamp} {shape:?}");
            if !ok {
                assert!(matches!(got, Err(RefusalReason::Shape { .. })));
            }
        }
    }

    #[test]
    fn pending_and_unreadable_stamps_in_that_order() {
        let mut candidate = plain(Some("nine"), 4, None);
        for role in [LiveHead, RetiredHead, Retained] {
            assert_eq!(
                admit(&candidate, role, 9),
                Err(RefusalReason::NotANumber("nine".into()))
            );
        }
        candidate.pending = Some(route(1, 6, 7));
        assert_eq!(admit(&candidate, LiveHead, 9), Err(RefusalReason::Pending));
        assert_eq!(
            admit(&candidate, RetiredHead, 9),
            Err(RefusalReason::Pending)
        );
        assert_eq!(
            admit(&candidate, Retained, 9),
            Err(RefusalReason::NotANumber("nine".into()))
        );
    }

    #[test]
    fn every_earlier_route_as_conversion_and_as_fence() {
        for (protocol, source, target) in EARLIER_ROUTES {
            let pending = route(protocol, source, target);
            for live in [8, 9, 13] {
                let conversion = fenced(target, &pending, Shape::of_stamp(target));
                let got = admit(&conversion, Retained, live).map(AdmittedStamp::get);
                let fence = fenced(target, &pending, Shape::of_stamp(source));
                let held = admit(&fence, Retained, live).map(AdmittedStamp::get);
                if target <= live {
                    assert_eq!(got, Ok(target));
                    let same = Shape::of_stamp(source) == Shape::of_stamp(target);
                    assert_eq!(held, Ok(if same { target } else { source }));
                } else {
                    assert!(matches!(got, Err(RefusalReason::EarlierRoute(_))));
                    assert!(matches!(held, Err(RefusalReason::EarlierRoute(_))));
                }
            }
        }
    }

    #[test]
    fn earlier_route_refusals_name_their_cause() {
        let good = route(2, 7, 8);
        let named = |mut c: Candidate| {
            c.on_main = false;
            c
        };
        let unstamped = |mut c: Candidate| {
            c.stamp = StampReading::Absent;
            c.version = 1;
            c
        };
        for (candidate, words) in [
            (fenced(8, "{}", Shape::Flat), "cannot be read"),
            (fenced(8, "not json", Shape::Flat), "cannot be read"),
            (fenced(8, &route(2, 6, 8), Shape::Flat), "no release had"),
            (fenced(14, &route(6, 9, 14), Shape::Flat), "no release had"),
            (
                fenced(10, &route(3, 9, 10), Shape::Flat),
                "above the live stamp 9",
            ),
            (fenced(7, &good, Shape::Flat), "stamp 7 under"),
            (unstamped(fenced(8, &good, Shape::Flat)), "no stamp under"),
            (named(fenced(8, &good, Shape::Flat)), "not on main"),
            (fenced(8, &good, Shape::Packed13), "neither stamp"),
        ] {
            let reason = admit(&candidate, Retained, 9).expect_err("refused");
            assert!(matches!(reason, RefusalReason::EarlierRoute(_)));
            assert!(reason.to_string().contains(words), "{reason}");
        }
    }

    proptest! {
        /// Whatever a version says, it is never read as a stamp above the live one, and never in a
        /// shape it does not have.
        #[test]
        fn admitted_rows_have_the_admitted_shape(
            stamp in proptest::option::of(0_u32..20),
            version in 0_u64..6,
            on_main: bool,
            role in prop_oneof![Just(LiveHead), Just(RetiredHead), Just(Retained)],
            live in prop_oneof![Just(8_u32), Just(9), Just(13)],
            shape in prop_oneof![
                Just(None), Just(Some(Shape::Flat)), Just(Some(Shape::Packed12)), Just(Some(Shape::Packed13))
            ],
            pending in proptest::option::of((1_u32..7, 5_u32..15, 6_u32..15)),
        ) {
            let text = stamp.map(|s| s.to_string());
            let candidate = Candidate {
                stamp: StampReading::parse(text.as_deref()),
                pending: pending.map(|(p, s, t)| route(p, s, t)),
                version,
                on_main,
                shape,
            };
            if let Ok(admitted) = admit(&candidate, role, live) {
                prop_assert!(admitted.get() <= live);
                prop_assert_eq!(shape, Some(admitted.shape()));
                prop_assert!(candidate.pending.is_none() || role == Retained);
            }
        }
    }
}
