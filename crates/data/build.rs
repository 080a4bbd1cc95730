//! Lists the archives of the data sets, so that they can be compiled in.

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// Folders under `data/`.
const DATA_SETS: [&str; 2] = ["hlo-v1", "hlo-full-v1"];

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let mut code = String::from("static DATA_SETS: &[DataSet] = &[\n");
    for name in DATA_SETS {
        list(name, &out, &mut code).expect("to a string");
    }
    code.push_str("];\n");
    fs::write(out.join("archives.rs"), code).expect("OUT_DIR can be written");
}

fn list(name: &str, out: &Path, code: &mut String) -> std::fmt::Result {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../data")
        .join(name)
        .canonicalize()
        .unwrap_or_else(|_| panic!("data/{name} is part of the repository"));
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut archives: Vec<PathBuf> = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .unwrap_or_else(|error| panic!("data/{name}: {error}"));
    archives.retain(|path| path.to_string_lossy().ends_with(".tar.zst"));
    archives.sort();

    let mut manifest = folder.join("manifest.json");
    println!("cargo:rerun-if-changed={}", manifest.display());
    if !manifest.exists() {
        // While a new data set is being made: the program that makes the manifest needs this
        // crate.
        manifest = out.join(format!("{name}.json"));
        let empty = format!(r#"{{"name": "{name}", "engine": "", "graphs": []}}"#);
        fs::write(&manifest, empty).expect("OUT_DIR can be written");
    }
    writeln!(code, "    DataSet {{")?;
    writeln!(code, "        name: {name:?},")?;
    writeln!(code, "        manifest: include_bytes!({manifest:?}),")?;
    writeln!(code, "        archives: &[")?;
    for path in &archives {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        writeln!(code, "            ({name:?}, include_bytes!({path:?})),")?;
    }
    writeln!(code, "        ],")?;
    writeln!(code, "    }},")
}
