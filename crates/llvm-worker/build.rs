//! Lets the worker find LLVM's library where the build found it.
fn main() {
    let lib = std::env::var("DEP_XLA_GYM_LLVM_LIB_DIR").expect("the shim's build names it");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{lib}");
}
