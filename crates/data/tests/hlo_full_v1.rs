//! What every claim made on programs of full size rests on.

use std::collections::{BTreeMap, BTreeSet};

use xla_gym_data::{Benchmarks, Library, Side, Split, opcode_sequence};

fn library() -> &'static Library {
    Library::named("hlo-full-v1").unwrap().unwrap()
}

#[test]
fn there_are_enough_programs_and_all_of_them_are_held_out() {
    let graphs = &library().manifest().graphs;
    let families: BTreeSet<&str> = graphs.iter().map(|graph| &*graph.family).collect();
    assert!(graphs.len() >= 16 && families.len() >= 12, "{} {families:?}", graphs.len());
    for graph in graphs {
        assert_eq!(graph.splits, BTreeMap::from([(Split::FullSize, Side::Test)]), "{}", graph.id);
        assert!(graph.default.is_ok(), "{}: {:?}", graph.id, graph.default);
    }
    let narrow = graphs.iter().filter(|graph| graph.bf16).count();
    assert!(narrow >= 8 && graphs.len() - narrow >= 8, "{narrow} in bf16");
    assert!(Benchmarks::find(["hlo-full-v1:all/train"]).is_err());
}

#[test]
fn texts_are_whole_and_no_two_have_the_same_opcodes() {
    let mut seen: BTreeMap<Vec<String>, &str> = BTreeMap::new();
    for graph in &library().manifest().graphs {
        let text = library().source(graph).unwrap().bytes.to_vec();
        let text = String::from_utf8(text).unwrap();
        for unwanted in ["{...}", "source_file", "site-packages", "metadata={"] {
            assert!(!text.contains(unwanted), "{} contains {unwanted}", graph.id);
        }
        let sequence: Vec<String> = opcode_sequence(&text).into_iter().map(str::to_owned).collect();
        assert_eq!(sequence.len() as u64, graph.size(), "{}", graph.id);
        if let Some(other) = seen.insert(sequence, &graph.id) {
            panic!("{} and {other} have the same opcodes", graph.id);
        }
    }
}

#[test]
fn models_are_as_large_as_the_published_ones() {
    let parameters = |id: &str| {
        let graph = library().graph(&format!("hlo-full-v1/{id}")).unwrap();
        graph.options["parameters"].as_u64().unwrap()
    };
    assert_eq!(parameters("gpt2/train-124m-bf16"), 124_439_808);
    assert_eq!(parameters("resnet/train-50"), 25_557_032);
    assert_eq!(parameters("vit/forward-b16"), 86_567_656);
}
