//! The compilers that there are. A new one gets a line here.

#![forbid(unsafe_code)]

use std::{fs::File, io::Read, sync::Arc};

use xla_gym_llvm_profile::Llvm;
use xla_gym_profile::Profile;
use xla_gym_toy_profile::Toy;
use xla_gym_xla_profile::Xla;

/// The names of all compilers; the first is the one that is meant if nobody says which.
pub const NAMES: [&str; 3] = ["xla", "llvm", "toy"];

/// The profile of a compiler.
///
/// ```
/// assert_eq!(xla_gym_compilers::profile("toy").unwrap().spec().engine, "toy");
/// assert!(xla_gym_compilers::profile("none").is_none());
/// ```
pub fn profile(name: &str) -> Option<Arc<dyn Profile>> {
    Some(match name {
        "xla" => Arc::new(Xla::default()),
        "llvm" => Arc::new(Llvm::default()),
        "toy" => Arc::new(Toy::default()),
        _ => return None,
    })
}

/// What LLVM's bitcode begins with. StableHLO's bytecode has the same ending.
const BITCODE: [u8; 4] = *b"BC\xC0\xDE";

/// The compiler of a file, by its ending, and by its beginning where two have the same; that which is
/// meant if nobody says which, if the ending says nothing.
pub fn of_file(name: &str) -> &'static str {
    let ending = ending(name);
    if ending == "bc" && begins(name) == Some(BITCODE) {
        return "llvm";
    }
    let has = |compiler: &&&str| {
        profile(compiler).is_some_and(|profile| profile.spec().files.endings.contains(&ending))
    };
    NAMES.iter().find(has).unwrap_or(&NAMES[0])
}

/// The first bytes of a file, if it is there to be read.
fn begins(name: &str) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    File::open(name).ok()?.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// The ending of a file's name, without that of a compression.
pub fn ending(name: &str) -> &str {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The endings of files that hold programs of any compiler.
pub fn endings() -> Vec<&'static str> {
    let profiles = NAMES.iter().filter_map(|name| profile(name));
    profiles.flat_map(|profile| profile.spec().files.endings.to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_profile_of_that_name() {
        for name in NAMES {
            assert_eq!(profile(name).unwrap().spec().engine, name);
        }
        assert_eq!(of_file("a/b.toy.zst"), "toy");
        assert_eq!(of_file("b.ll"), "llvm");
        assert_eq!(of_file("hlo-v1/mlp/x"), "xla");
    }

    #[test]
    fn bitcode_is_told_from_bytecode_by_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        for (bytes, expected) in [(&b"BC\xC0\xDE5"[..], "llvm"), (b"ML\xEFR", "xla"), (b"", "xla")]
        {
            let path = folder.path().join("a.bc");
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(of_file(path.to_str().unwrap()), expected);
        }
        assert_eq!(of_file("not-there.bc"), "xla");
    }
}
