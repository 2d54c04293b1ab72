#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod vectors;

use super::*;
use crate::schema::source::{ParseMode, compile};
use crate::schema::vintage::Vintage;
