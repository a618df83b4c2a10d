use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::*;

/// Path and content of all files below a folder.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, base: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                walk(&path, base, out);
            } else {
                out.insert(path.strip_prefix(base).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(dir, dir, &mut out);
    out
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write(path: &str, text: &str) -> Change {
    Change { write: vec![(path.into(), text.into())], take: Vec::new() }
}

fn set() -> (tempfile::TempDir, Place) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(&dir.path().join("set")).unwrap();
    let change = Change {
        write: vec![("meta/info".into(), b"1".to_vec()), ("data/a/0".into(), b"rows".to_vec())],
        take: Vec::new(),
    };
    commit(&place, Base::Nothing, &change).unwrap();
    (dir, place)
}

#[test]
fn a_commit_keeps_replaces_and_adds_and_leaves_nothing_beside() {
    let (dir, place) = set();
    std::os::unix::fs::symlink("info", place.root().join("meta/link")).unwrap();
    let kept = std::fs::metadata(place.root().join("data/a/0")).unwrap().ino();
    // Somebody else's hard link shows whether the old file was changed in place.
    std::fs::hard_link(place.root().join("meta/info"), dir.path().join("witness")).unwrap();
    let staged = dir.path().join("staged");
    std::fs::write(&staged, "video").unwrap();
    let change = Change {
        write: vec![("meta/info".into(), b"2".to_vec()), ("data/b/1".into(), b"more".to_vec())],
        take: vec![(staged, "videos/v/0".into())],
    };
    assert!(commit(&place, Base::Present, &change).unwrap().unconfirmed.is_none());
    let now = tree(&place.root());
    let now: Vec<_> = now.iter().map(|(p, b)| (p.to_str().unwrap(), b.as_slice())).collect();
    let want: [(&str, &[u8]); 5] = [
        ("data/a/0", b"rows"),
        ("data/b/1", b"more"),
        ("meta/info", b"2"),
        ("meta/link", b"2"),
        ("videos/v/0", b"video"),
    ];
    assert_eq!(now, want);
    assert_eq!(std::fs::metadata(place.root().join("data/a/0")).unwrap().ino(), kept);
    assert_eq!(std::fs::read(dir.path().join("witness")).unwrap(), b"1");
    assert_eq!(names(dir.path()), ["set", "witness"]);
}

#[test]
fn a_commit_that_fails_leaves_the_old_state_and_nothing_beside() {
    let (dir, place) = set();
    let before = tree(&place.root());
    for bad in [write("meta/info/below-a-file", "x"), write("data", "a file where a folder is")] {
        assert!(matches!(commit(&place, Base::Present, &bad), Err(Error::Io { .. })));
        assert_eq!(tree(&place.root()), before);
        assert_eq!(names(dir.path()), ["set"]);
    }
}

#[test]
fn a_first_commit_does_not_take_a_name_that_exists() {
    let (dir, place) = set();
    let before = tree(&place.root());
    let refused = commit(&place, Base::Nothing, &write("a", "b"));
    assert!(matches!(refused, Err(Error::AlreadyExists { .. })), "{refused:?}");
    assert_eq!((tree(&place.root()), names(dir.path())), (before, vec!["set".to_owned()]));
}

#[test]
fn leftovers_are_removed_only_with_our_mark() {
    let (dir, place) = set();
    let ours = TemporaryDir::create(&place, "rec-").unwrap();
    std::fs::write(ours.path().join("video"), "half").unwrap();
    ours.keep();
    drop(ours);
    for foreign in [".set.rec-7", ".set.gen-x", ".set.other", "set.gen-1", ".sets.gen-1"] {
        std::fs::create_dir(dir.path().join(foreign)).unwrap();
    }
    std::fs::write(dir.path().join(".set.rec-7.mark"), "somebody else's").unwrap();
    std::fs::write(dir.path().join(".set.gen-5.mark"), "").unwrap();
    recover(&place, &Lock::take(&place).unwrap()).unwrap();
    assert_eq!(
        names(dir.path()),
        [".set.gen-x", ".set.other", ".set.rec-7", ".set.rec-7.mark", ".sets.gen-1", "set", "set.gen-1"]
    );
    // A folder that is in the way and not ours is walked around.
    std::fs::create_dir(dir.path().join(".set.gen-1")).unwrap();
    commit(&place, Base::Present, &write("meta/info", "2")).unwrap();
    assert!(names(dir.path()).contains(&".set.gen-1".to_owned()));
}

#[test]
fn a_second_temporary_folder_leaves_the_mark_of_the_first_alone() {
    let (dir, place) = set();
    let first = TemporaryDir::create(&place, "rec-").unwrap();
    let second = TemporaryDir::create(&place, "rec-").unwrap();
    assert_ne!(first.path(), second.path());
    // Killed here: both have to be found.
    first.keep();
    second.keep();
    recover(&place, &Lock::take(&place).unwrap()).unwrap();
    assert_eq!(names(dir.path()), ["set"]);
}

#[test]
fn two_writers_are_kept_apart_and_the_lock_leaves_no_file() {
    let (dir, place) = set();
    let lock = Lock::take(&place).unwrap();
    let refused = Lock::take(&place).unwrap_err();
    let pid = format!(" (process {})", std::process::id());
    assert!(matches!(&refused, Error::Locked { holder, .. } if *holder == pid), "{refused}");
    drop(lock);
    assert_eq!(names(dir.path()), ["set"]);
    assert!(Lock::take(&place).is_ok());
}

/// A set, and a next generation beside it that holds `meta/info` = 2.
fn before_the_swap() -> (tempfile::TempDir, Place, TemporaryDir) {
    let (dir, place) = set();
    let next = TemporaryDir::create(&place, "gen-").unwrap();
    std::fs::create_dir(next.path().join("meta")).unwrap();
    std::fs::write(next.path().join("meta/info"), "2").unwrap();
    (dir, place, next)
}

#[test]
fn the_journal_route_swaps_too() {
    let (dir, place, next) = before_the_swap();
    let old = journal::swap(&place, &next, u64::MAX).unwrap();
    assert_eq!(tree(old.path()).len(), 2);
    drop((old, next));
    assert_eq!(std::fs::read(place.root().join("meta/info")).unwrap(), b"2");
    assert_eq!(names(dir.path()), ["set"]);
}

#[test]
fn a_journal_is_rolled_forward_from_every_moment_between_its_renames() {
    for renames in 0..=2 {
        for reader in [true, false] {
            let (dir, place, next) = before_the_swap();
            let old = TemporaryDir::mark(&place, "old-1").unwrap();
            let text = r#"{"next":"gen-1","previous":"old-1"}"#;
            std::fs::write(place.beside("journal"), text).unwrap();
            if renames > 0 {
                std::fs::rename(place.root(), old.path()).unwrap();
            }
            if renames > 1 {
                std::fs::rename(next.path(), place.root()).unwrap();
            }
            old.keep();
            next.keep();
            if reader {
                settle(&place.root()).unwrap();
                assert_eq!(std::fs::read(place.root().join("meta/info")).unwrap(), b"2", "{renames}");
                assert!(!place.beside("journal").exists());
            }
            recover(&place, &Lock::take(&place).unwrap()).unwrap();
            assert_eq!(std::fs::read(place.root().join("meta/info")).unwrap(), b"2", "{renames}");
            assert_eq!(names(dir.path()), ["set"], "{renames}");
        }
    }
}

#[test]
fn a_journal_that_names_foreign_folders_is_not_followed() {
    let (dir, place) = set();
    std::fs::create_dir(dir.path().join("precious")).unwrap();
    let text = r#"{"next":"gen-1/../../precious","previous":"old-1"}"#;
    std::fs::write(place.beside("journal"), text).unwrap();
    assert!(matches!(settle(&place.root()), Err(Error::Key { .. })));
    assert!(place.root().join("meta/info").exists());
}

#[test]
fn the_last_state_survives_even_without_journal_and_name() {
    let (dir, place) = set();
    let old = TemporaryDir::mark(&place, "old-1").unwrap();
    std::fs::rename(place.root(), old.path()).unwrap();
    old.keep();
    drop(old);
    recover(&place, &Lock::take(&place).unwrap()).unwrap();
    assert_eq!(tree(&place.root()).len(), 2);
    assert_eq!(names(dir.path()), ["set"]);
}

#[test]
fn a_journal_that_outlived_its_commit_is_gone_before_the_next_generation_takes_a_name() {
    for (next_waits, commits) in [(false, true), (true, false)] {
        let (dir, place) = set();
        let before = tree(&place.root());
        let text = r#"{"next":"gen-1","previous":"old-1"}"#;
        std::fs::write(place.beside("journal"), text).unwrap();
        if next_waits {
            std::fs::create_dir(place.beside("gen-1")).unwrap();
        }
        let result = commit(&place, Base::Present, &write("meta/info", "2"));
        assert_eq!(result.is_ok(), commits, "{result:?}");
        if commits {
            assert_eq!(names(dir.path()), ["set"]);
        } else {
            // Another generation than the one that this writer knows: nothing is touched.
            assert!(result.unwrap_err().to_string().contains("--resume"));
            assert_eq!(tree(&place.root()), before);
            assert_eq!(names(dir.path()), [".set.gen-1", ".set.journal", "set"]);
        }
    }
}

#[test]
fn a_commit_does_not_begin_beside_a_journal_that_cannot_be_read() {
    let (dir, place) = set();
    std::fs::write(place.beside("journal"), "{").unwrap();
    let refused = commit(&place, Base::Present, &write("meta/info", "2"));
    assert!(matches!(refused, Err(Error::Json { .. })), "{refused:?}");
    assert_eq!(names(dir.path()), [".set.journal", "set"]);
}

#[test]
fn a_replaced_file_that_is_a_link_gives_way_to_the_new_one() {
    let (dir, place) = set();
    let (info, blob) = (place.root().join("meta/info"), dir.path().join("blob"));
    std::fs::rename(&info, &blob).unwrap();
    std::os::unix::fs::symlink("../../blob", &info).unwrap();
    commit(&place, Base::Present, &write("meta/info", "2")).unwrap();
    assert!(!info.is_symlink());
    assert_eq!((std::fs::read(&info).unwrap(), std::fs::read(&blob).unwrap()), (b"2".into(), b"1".into()));
}

#[test]
fn a_link_to_a_folder_inside_of_a_set_is_refused_and_one_to_a_file_is_not() {
    let (dir, place) = set();
    std::os::unix::fs::symlink("info", place.root().join("meta/file-link")).unwrap();
    assert!(refuse_linked_folders(&place.root()).is_ok());
    let link = place.root().join("data/b");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    let refused = refuse_linked_folders(&place.root());
    assert!(matches!(&refused, Err(Error::LinkedFolder { path }) if *path == link), "{refused:?}");
}

#[test]
fn the_parents_of_all_folders_that_are_made_are_synced() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path();
    let deep = base.join("a/b/c");
    assert_eq!(parents_of_missing(&deep), [&base.join("a/b"), &base.join("a"), base]);
    make_dirs(&deep).unwrap();
    assert!(deep.is_dir() && parents_of_missing(&deep).is_empty());
}
