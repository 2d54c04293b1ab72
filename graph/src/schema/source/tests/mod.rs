#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod constraints;
mod hostile;
mod interfaces;
mod rules;
mod syntax;

use super::*;
use crate::schema::shape::SchemaShape;

/// The shape of a source that has to be admitted.
fn admit(source: &str) -> SchemaShape {
    match compile(source, ParseMode::Admission, None) {
        Ok(compiled) => compiled.shape,
        Err(e) => panic!("{source}\n{e}"),
    }
}

/// The error of a source that has to be refused when it is new.
fn refused(source: &str) -> String {
    match compile(source, ParseMode::Admission, None) {
        Ok(_) => panic!("admitted: {source}"),
        Err(e) => e.to_string(),
    }
}

/// Each source must be refused with a message that holds the text beside it, in both modes.
fn all_refused(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        for mode in [ParseMode::Admission, ParseMode::Tolerant] {
            match compile(source, mode, None) {
                Ok(_) => panic!("{mode:?} accepts: {source}"),
                Err(e) => assert!(e.message.contains(expected), "{source}\n{e}\n{expected}"),
            }
        }
    }
}

/// Each source must be refused when new and accepted when stored.
fn only_tolerated(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        let message = refused(source);
        assert!(
            message.contains(expected),
            "{source}\n{message}\n{expected}"
        );
        if let Err(e) = compile(source, ParseMode::Tolerant, None) {
            panic!("{source}\n{e}");
        }
    }
}
