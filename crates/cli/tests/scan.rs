//! A user's own graphs: files, patterns, folders, folders of XLA's dumps.

mod common;

use common::{Home, graph, mlp};

fn count(value: &serde_json::Value, field: &str) -> usize {
    value[field].as_array().unwrap().len()
}

#[test]
fn a_dump_folder_gives_its_modules_before_optimisation() {
    let home = Home::new();
    let text = std::fs::read(mlp("hlo")).unwrap();
    std::fs::create_dir(home.path("dump")).unwrap();
    home.write("dump/module_0001.jit_f.before_optimizations.txt", &text);
    home.write("dump/module_0001.jit_f.cpu_after_optimizations.txt", &text);
    home.write("dump/module_0002.jit_g.before_optimizations.txt", "garbage");
    home.write("dump/module_0001.jit_f.ir-no-opt.ll", "");
    let scanned = home.json(&["data", "scan", "dump"]);
    assert_eq!((count(&scanned, "programs"), count(&scanned, "skipped")), (1, 3));
    assert!(scanned["programs"][0]["default"]["Ok"]["kernels"].as_u64().unwrap() > 0, "{scanned}");
    home.run(&["data", "scan", "dump"]).expect(0).prints(&[
        "1 programs can be used, 3 files were passed over",
        "module_0002",
        "not a program before optimization",
    ]);
}

#[test]
fn files_patterns_and_ids_can_be_mixed() {
    let home = Home::new();
    home.write("a.hlo", std::fs::read(mlp("hlo")).unwrap());
    home.write("b.hlo", std::fs::read(mlp("hlo")).unwrap());
    let args =
        ["data", "scan", "--no-default", "*.hlo", &graph("mlp-train"), "hlo-v1/sorting/group-by"];
    let scanned = home.json(&args);
    let fingerprint = |index: usize| scanned["programs"][index]["fingerprint"].clone();
    assert_eq!(count(&scanned, "programs"), 4);
    assert_eq!(fingerprint(0), fingerprint(1));
    assert_ne!(fingerprint(0), fingerprint(3));
}

#[test]
fn nothing_to_scan_is_an_error_that_says_why() {
    let home = Home::new();
    home.run(&["data", "scan", "none.hlo"]).expect(3).says(&["none.hlo"]);
    home.run(&["data", "scan", "*.hlo"]).expect(3).says(&["stands for no program"]);
    home.write("bad.hlo", "garbage");
    home.run(&["data", "scan", "bad.hlo"]).expect(1).prints(&["0 programs can be used", "bad.hlo"]);
}
