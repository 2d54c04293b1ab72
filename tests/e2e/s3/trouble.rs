//! A server that is busy for a while: 503, 409, answers that get lost.

use std::collections::{BTreeMap, BTreeSet};

use fixtures::fixture_s::SpecS;

use super::{Case, stopped_with_a_name};
use crate::support::proxy::{Answer, Proxy, Request, Status};
use crate::support::run::{finish, report_of};

/// A run under `rule` completes.
fn completes(spec: SpecS, rule: impl FnMut(&Request) -> Answer + Send + 'static) {
    let Some(case) = Case::of(spec) else {
        return;
    };
    let proxy = Proxy::start(case.place.server, rule);
    let done = case.place.upgrade(&[], &proxy);
    assert_eq!(done["outcome"], "completed", "{done:#}");
    case.finishes();
}

#[test]
fn a_server_that_is_busy_now_and_then_is_waited_for() {
    completes(SpecS::stamp_9(), |request| {
        if request.number % 6 == 0 && request.number < 240 {
            Answer::Refuse(Status::SlowDown)
        } else {
            Answer::Pass
        }
    });
}

#[test]
fn creates_whose_answer_is_lost_are_found_again() {
    let mut lost = BTreeSet::new();
    completes(SpecS::stamp_9(), move |request| {
        if request.create && lost.insert(request.path.clone()) {
            Answer::PassThenRefuse(Status::SlowDown)
        } else {
            Answer::Pass
        }
    });
}

#[test]
fn creates_that_conflict_with_nothing_are_tried_again() {
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    completes(SpecS::stamp_13(), move |request| {
        let times = refused.entry(request.path.clone()).or_default();
        if request.create && *times < 2 {
            *times += 1;
            Answer::Refuse(Status::Conflict)
        } else {
            Answer::Pass
        }
    });
}

#[test]
fn a_server_that_stays_busy_stops_the_run_with_a_name() {
    let Some(case) = Case::of(SpecS::stamp_9()) else {
        return;
    };
    for first in [1, 6, 14] {
        case.place.restore(&case.before);
        let mut down = false;
        let proxy = Proxy::start(case.place.server, move |request| {
            down = down || request.write == Some(first);
            if down {
                Answer::Refuse(Status::SlowDown)
            } else {
                Answer::Pass
            }
        });
        let mut command = case.place.command(&[], &proxy);
        command.env("OBJECT_STORE_CLIENT_MAX_RETRIES", "1");
        let report = report_of(&finish(command));
        assert_ne!(report["outcome"], "completed", "{report:#}");
        stopped_with_a_name(&report);
        case.state();
        case.finishes();
    }
}

#[test]
fn a_server_that_refuses_every_create_stops_the_run_with_a_name() {
    let Some(case) = Case::of(SpecS::stamp_8()) else {
        return;
    };
    let mut creates = 0;
    let proxy = Proxy::start(case.place.server, move |request| {
        creates += usize::from(request.create);
        // The proof and the archive pass.
        if request.create && creates > 3 {
            Answer::Refuse(Status::Conflict)
        } else {
            Answer::Pass
        }
    });
    let report = case.place.upgrade(&[], &proxy);
    assert_ne!(report["outcome"], "completed", "{report:#}");
    stopped_with_a_name(&report);
    case.state();
    case.finishes();
}
