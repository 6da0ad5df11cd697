//! Secrets that stand in a file: no excerpt may show the lines they are on.

use crate::diagnostic::{Diagnostic, Place, Source};

/// Where secrets stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Secrets(Vec<Place>);

impl Secrets {
    pub(super) fn add(&mut self, place: Place) {
        self.0.push(place);
    }

    pub(super) fn hold(&self, place: &Place) -> bool {
        self.0.contains(place)
    }

    /// Takes the excerpts away that would show a secret.
    pub(super) fn hide(&self, diagnostics: &mut [Diagnostic], sources: &[Source]) {
        for secret in &self.0 {
            let Some(source) = sources.get(secret.source) else {
                continue;
            };
            let before = source.text.get(..secret.bytes.start).unwrap_or_default();
            let from = before.rfind('\n').map_or(0, |at| at + 1);
            let after = source.text.get(secret.bytes.end..).unwrap_or_default();
            let to = secret.bytes.end + after.find('\n').unwrap_or(after.len());
            for diagnostic in &mut *diagnostics {
                let place = &diagnostic.place;
                if place.source == secret.source
                    && place.bytes.start <= to
                    && place.bytes.end >= from
                {
                    let line = source.text.get(..place.bytes.start).unwrap_or_default();
                    let line = line.matches('\n').count() + 1;
                    diagnostic.message = format!("{}:{line}: {}", source.name, diagnostic.message);
                    diagnostic.place.source = usize::MAX;
                }
            }
        }
    }
}
