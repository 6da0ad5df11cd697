//! What is written is no file that is read, nor one file twice.

use std::path::Path;

use super::source::Source;
use crate::cli::BulkArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::offsets::SentFile;
use crate::output::Place;

/// What a file is named as, and where it is if it can be taken for another.
type Named = (String, Option<Place>);

/// Looks at all files of a bulk before anything is made or sent.
///
/// # Errors
/// [`ErrorKind::Usage`] when two of them are one.
pub(super) fn must_be(bulk: &BulkArgs, source: &Source) -> Result<()> {
    let mut files = Vec::new();
    if let Some(path) = source.path() {
        let place = or_standard(path, Place::of_standard_input);
        files.push((format!("the source {}", source.name()), place));
    }
    if let Some(path) = &bulk.resume {
        let lock = SentFile::lock_of(path);
        let lock_name = format!("the lock of --resume, {}", lock.display());
        files.push((format!("--resume {}", path.display()), Place::of(path)));
        files.push((lock_name, Place::of(&lock)));
    }
    if let Some(path) = &bulk.results {
        let place = or_standard(path, Place::of_standard_output);
        files.push((format!("--results {}", path.display()), place));
    }
    match twice(&files) {
        None => Ok(()),
        Some((before, file)) => Err(Error::new(
            ErrorKind::Usage,
            format!("{file} is the same file as {before}"),
        )
        .hint("name another file")),
    }
}

fn or_standard(path: &Path, standard: impl FnOnce() -> Option<Place>) -> Option<Place> {
    if path.as_os_str() == "-" {
        return standard();
    }
    Place::of(path)
}

/// The first that is one of those before it, behind that one.
fn twice(files: &[Named]) -> Option<(&str, &str)> {
    files.iter().enumerate().find_map(|(at, (name, place))| {
        let mut before = files.iter().take(at);
        let same = before.find(|(_, other)| place.is_some() && other == place)?;
        Some((same.0.as_str(), name.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_are_one_are_found() {
        let free = |path: &str| Some(Place::Free(path.into()));
        let there = |inode| Some(Place::There { device: 1, inode });
        for (places, found) in [
            (vec![], None),
            (vec![None, None], None),
            (vec![there(1), free("/a"), free("/b")], None),
            (vec![there(1), free("/a"), there(1)], Some(("0", "2"))),
            (vec![free("/a"), there(1), free("/a")], Some(("0", "2"))),
            (vec![None, there(1), there(1)], Some(("1", "2"))),
        ] {
            let files: Vec<Named> = places
                .into_iter()
                .enumerate()
                .map(|(at, place)| (at.to_string(), place))
                .collect();
            assert_eq!(twice(&files), found, "{files:?}");
        }
    }
}
