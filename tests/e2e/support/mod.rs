//! What the tests share.

pub mod roots;
pub mod run;
pub mod serve;
pub mod source;
