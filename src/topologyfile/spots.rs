//! Where each object of a topology stands in its file.

use std::collections::BTreeMap;

use crate::diagnostic::Place;
use crate::lint::Subject;
use crate::topologyfile::fields::Fields;

/// Where each object stands; what a short form makes stands where that does.
#[derive(Debug, Default)]
pub(super) struct Spots {
    objects: BTreeMap<Subject, Spot>,
}

#[derive(Debug)]
struct Spot {
    place: Place,
    keys: Vec<(&'static str, Place)>,
}

impl Spots {
    /// An object that begins at `place`, with the keys it is written with.
    pub(super) fn add(&mut self, subject: Subject, place: Place, fields: Option<Fields<'_>>) {
        let keys = fields.iter().flat_map(Fields::places).collect();
        self.objects.insert(subject, Spot { place, keys });
    }

    /// A key of an object that a short form made.
    pub(super) fn add_key(&mut self, subject: &Subject, key: &'static str, place: Place) {
        if let Some(spot) = self.objects.get_mut(subject) {
            spot.keys.push((key, place));
        }
    }

    /// Where the object begins.
    pub(super) fn object(&self, subject: &Subject) -> Option<&Place> {
        self.objects.get(subject).map(|spot| &spot.place)
    }

    /// Where a key of it stands, or it itself if it is written without that key.
    pub(super) fn field(&self, subject: &Subject, field: Option<&str>) -> Option<&Place> {
        let spot = self.objects.get(subject)?;
        let key = field.and_then(|field| {
            let found = spot.keys.iter().find(|(key, _)| *key == field);
            found.map(|(_, place)| place)
        });
        Some(key.unwrap_or(&spot.place))
    }
}
