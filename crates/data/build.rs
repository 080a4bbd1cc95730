//! Lists the archives of the data set, so that they can be compiled in.

use std::{env, fmt::Write, fs, path::Path};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../data/hlo-v1")
        .canonicalize()
        .expect("data/hlo-v1 is part of the repository");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut archives: Vec<_> = fs::read_dir(&folder)
        .expect("data/hlo-v1 can be read")
        .map(|entry| entry.expect("data/hlo-v1 can be read").path())
        .filter(|path| path.to_string_lossy().ends_with(".tar.zst"))
        .collect();
    archives.sort();

    let out = env::var("OUT_DIR").expect("cargo sets it");
    let mut code = String::new();
    let mut manifest = folder.join("manifest.json");
    println!("cargo:rerun-if-changed={}", manifest.display());
    if !manifest.exists() {
        // While a new data set is being made: the program that makes the manifest needs this
        // crate.
        manifest = Path::new(&out).join("empty.json");
        let empty = r#"{"name": "hlo-v1", "engine": "", "graphs": []}"#;
        fs::write(&manifest, empty).expect("OUT_DIR can be written");
    }
    writeln!(code, "static MANIFEST: &[u8] = include_bytes!({manifest:?});").expect("to a string");
    writeln!(code, "static ARCHIVES: &[(&str, &[u8])] = &[").expect("to a string");
    for path in &archives {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),").expect("to a string");
    }
    writeln!(code, "];").expect("to a string");
    fs::write(Path::new(&out).join("archives.rs"), code).expect("OUT_DIR can be written");
}
