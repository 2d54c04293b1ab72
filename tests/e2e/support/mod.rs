//! What the tests share.

pub mod random;
pub mod refusal;
pub mod roots;
pub mod run;
pub mod serve;
pub mod source;
