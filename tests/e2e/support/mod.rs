//! What the tests share.

pub mod proxy;
pub mod random;
pub mod refusal;
pub mod roots;
pub mod run;
pub mod s3;
pub mod serve;
pub mod source;
