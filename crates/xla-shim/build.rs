//! Builds the C++ shim against the XLA headers and library that set-up fetched.

use std::{env, path::PathBuf};

/// The pinned engine; `tools/setup.py` fetches the wheel of the same version.
const ENGINE: &str = "xla-tf-2.21.0";

const SOURCES: [&str; 9] = [
    "cc/module.cc",
    "cc/signature.cc",
    "cc/identity.cc",
    "cc/passes.cc",
    "cc/pipeline.cc",
    "cc/promote.cc",
    "cc/reduce.cc",
    "cc/unknown_calls.cc",
    "cc/execute.cc",
];

fn engine_dir() -> PathBuf {
    println!("cargo:rerun-if-env-changed=XLA_GYM_ENGINE_DIR");
    let parent = env::var_os("XLA_GYM_ENGINE_DIR").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
            .join("../../.engine")
    });
    let dir = parent.join(ENGINE);
    let stamp = dir.join("engine.json");
    assert!(
        stamp.is_file(),
        "the XLA engine is not in {}: run `make setup` (or set XLA_GYM_ENGINE_DIR to the folder that holds {ENGINE})",
        dir.display(),
    );
    println!("cargo:rerun-if-changed={}", stamp.display());
    dir.canonicalize().expect("the engine folder exists")
}

fn main() {
    let engine = engine_dir();
    let include = engine.join("include");
    let lib = engine.join("lib");

    let mut build = cxx_build::bridge("src/lib.rs");
    build
        .files(SOURCES)
        .std("c++17")
        // The passes are optimised inside the library; what is ours and runs after each of them is
        // hashing.
        .opt_level(2)
        .debug(false)
        .define("NDEBUG", None)
        // `pjrt_client.h` wants MLIR headers that the wheel lacks; the stubs hold forward declarations.
        .include("cc/stubs")
        .include("cc")
        .include(&include)
        .include(include.join("external/farmhash_archive/src"))
        .include(include.join("external/highwayhash"))
        .warnings(false)
        .flag("-w");
    build.compile("xla_gym_xla_shim");

    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-changed=cc/shim.h");
    println!("cargo:rerun-if-changed=cc/stubs");
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=dylib=tensorflow_cc");
    println!("cargo:rustc-link-lib=dylib=tensorflow_framework");
    println!("cargo:lib_dir={}", lib.display());
}
