//! A schema contract together with the name of its archive.

use graph::model::ContractHead;
use graph::schema::Contract;

/// A contract of the source and its archive digest, computed once: every record that names the
/// contract carries the digest (`docs/format/legacy-manifest.md` 7.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceContract {
    contract: Contract,
    content_hash: String,
}

impl SourceContract {
    /// Digest a contract; one that is too large to archive is [`graph::Error::Refused`].
    pub fn new(contract: Contract) -> graph::Result<Self> {
        let content_hash = contract.content_hash()?;
        Ok(Self {
            contract,
            content_hash,
        })
    }

    /// The contract.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Its identity.
    pub fn head(&self) -> &ContractHead {
        &self.contract.head
    }

    /// SHA-256 hex of its archive object, which is also the archive's name.
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }
}
