//! A bound on what a source compiles to.
//!
//! Interfaces multiply: a source of a few kilobytes can inject thousands of properties into thousands
//! of nodes. The compiled schema has to fit the 64 MiB of a schema object anyway, so its size is
//! summed up while it is built and the build stops there instead of running out of memory.

/// Remaining bytes of the compiled schema.
#[derive(Debug)]
pub struct Budget {
    left: usize,
    limit: usize,
}

/// The compiled schema is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The limit in bytes.
    pub limit: usize,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Take `bytes` away.
    pub fn spend(&mut self, bytes: usize) -> Result<(), Exceeded> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Exceeded { limit: self.limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spends_to_the_last_byte() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.spend(4), Ok(()));
        assert_eq!(budget.spend(7), Err(Exceeded { limit: 10 }));
        assert_eq!(budget.spend(6), Ok(()));
        assert_eq!(budget.spend(usize::MAX), Err(Exceeded { limit: 10 }));
    }
}
