//! Bounded reads of the binary locator objects; every length is checked before it is used.

use ulid::Ulid;

use crate::error::{Error, Result};

/// A cursor over the bytes of one object.
pub(super) struct Bytes<'a> {
    object: &'a str,
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// Start at the magic, which must be `magic`.
    pub(super) fn open(object: &'a str, bytes: &'a [u8], magic: &[u8; 8]) -> Result<Self> {
        match bytes.strip_prefix(magic) {
            Some(rest) => Ok(Self { object, rest }),
            None => Err(Error::internal(format!(
                "{object} does not start with {}",
                String::from_utf8_lossy(magic)
            ))),
        }
    }

    /// An [`Error::Internal`] about this object.
    pub(super) fn bad(&self, what: impl std::fmt::Display) -> Error {
        Error::internal(format!("{}: {what}", self.object))
    }

    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            return Err(self.bad(format_args!(
                "cut short: {count} bytes expected, {} left",
                self.rest.len()
            )));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A binary ULID, 16 bytes big-endian.
    pub(super) fn ulid(&mut self) -> Result<Ulid> {
        Ok(Ulid::from_bytes(self.array()?))
    }

    /// A `u16` length and that many bytes of UTF-8.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let length = usize::from(self.u16()?);
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.bad("a name is not UTF-8"))
    }

    pub(super) fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.bad(format_args!(
            "{} bytes follow its last entry",
            self.rest.len()
        )))
    }
}
