//! Lets the worker find the engine's library where set-up put it.
fn main() {
    let lib = std::env::var("DEP_XLA_GYM_ENGINE_LIB_DIR").expect("the shim's build names it");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{lib}");
}
