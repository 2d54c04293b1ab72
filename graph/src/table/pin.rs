//! The metadata a pin records of the manifest it names (`docs/format/manifest-v14.md` 4.1).

use lance::Dataset;
use lance_table::io::commit::ManifestNamingScheme;

use crate::model::PinMetadata;
use crate::store::Root;

/// Metadata of the manifest `dataset` was opened from or committed as. Size and ETag are what Lance reported, so
/// they can be absent; the members of staged versions are left empty.
pub fn manifest_metadata(root: &Root, dataset: &Dataset) -> PinMetadata {
    let location = dataset.manifest_location();
    let scheme = match location.naming_scheme {
        ManifestNamingScheme::V1 => "V1",
        ManifestNamingScheme::V2 => "V2",
    };
    PinMetadata {
        manifest_path: root.shown_path(&location.path),
        manifest_size: location.size,
        e_tag: location.e_tag.clone(),
        naming_scheme: Some(scheme.into()),
        ..PinMetadata::default()
    }
}
