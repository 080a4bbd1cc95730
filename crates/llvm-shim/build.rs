//! Finds LLVM 19, builds the C++ part against its headers and links its shared library.

use std::{env, path::PathBuf, process::Command};

const MAJOR: &str = "19";

const SOURCES: [&str; 8] = [
    "cc/module.cc",
    "cc/run.cc",
    "cc/identity.cc",
    "cc/version.cc",
    "cc/features.cc",
    "cc/graph.cc",
    "cc/clone.cc",
    "cc/object.cc",
];

/// The answers of one `llvm-config`.
struct Llvm {
    config: PathBuf,
}

impl Llvm {
    /// The first `llvm-config` of the right version; `llvm-sys` reads the same variable.
    fn find() -> Llvm {
        println!("cargo:rerun-if-env-changed=LLVM_SYS_191_PREFIX");
        let named = env::var_os("LLVM_SYS_191_PREFIX").map(PathBuf::from);
        let candidates = match &named {
            Some(prefix) => vec![prefix.join("bin/llvm-config")],
            None => vec![
                PathBuf::from(format!("/usr/lib/llvm-{MAJOR}/bin/llvm-config")),
                PathBuf::from(format!("llvm-config-{MAJOR}")),
                PathBuf::from("llvm-config"),
            ],
        };
        let found = candidates.into_iter().map(|config| Llvm { config }).find(|llvm| {
            llvm.ask("--version").is_some_and(|version| {
                version.split('.').next() == Some(MAJOR) && llvm.headers().is_dir()
            })
        });
        found.unwrap_or_else(|| {
            let looked_at = match named {
                Some(prefix) => format!("in LLVM_SYS_191_PREFIX={}", prefix.display()),
                None => "on this machine".to_owned(),
            };
            panic!(
                "there is no LLVM {MAJOR} with its headers {looked_at}: run `make setup-llvm` \
                 (or set LLVM_SYS_191_PREFIX to its folder); everything but the LLVM worker builds \
                 without it"
            )
        })
    }

    fn ask(&self, question: &str) -> Option<String> {
        let output = Command::new(&self.config).arg(question).output().ok()?;
        let answer = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| answer.trim().to_owned())
    }

    fn headers(&self) -> PathBuf {
        let folder = self.ask("--includedir").unwrap_or_default();
        PathBuf::from(folder).join("llvm")
    }
}

fn main() {
    let llvm = Llvm::find();
    let answer = |question| llvm.ask(question).expect("it has answered before");
    let lib = answer("--libdir");

    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .files(SOURCES)
        .include("cc")
        // LLVM is built without run-time types; classes derived from its own must be, too.
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-isystem")
        .flag(answer("--includedir"))
        .define("NDEBUG", None)
        .define("__STDC_CONSTANT_MACROS", None)
        .define("__STDC_FORMAT_MACROS", None)
        .define("__STDC_LIMIT_MACROS", None)
        // What is ours and runs after each pass is hashing and counting.
        .opt_level(2)
        .debug(false);
    build.compile("xla_gym_llvm_shim");

    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-changed=cc/shim.h");
    println!("cargo:rerun-if-changed=cc/diagnostics.h");
    println!("cargo:rerun-if-changed=cc/subclass.h");
    println!("cargo:rustc-link-search=native={lib}");
    println!("cargo:rustc-link-lib=dylib=LLVM-{MAJOR}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    println!("cargo:lib_dir={lib}");
}
