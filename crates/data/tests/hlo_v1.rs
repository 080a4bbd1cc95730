//! What every claim made on the data set rests on.

use std::collections::{BTreeMap, BTreeSet};

use xla_gym_data::{Graph, Library, NEAR, Shingles, Side, Split, UNSEEN, opcode_sequence};

fn library() -> &'static Library {
    Library::hlo_v1().unwrap()
}

fn text(graph: &Graph) -> String {
    String::from_utf8(library().source(graph).unwrap().bytes.to_vec()).unwrap()
}

fn side(split: Split, side: Side) -> Vec<&'static Graph> {
    library().manifest().side(split, side).collect()
}

#[test]
fn there_are_enough_graphs_of_enough_families() {
    let graphs = &library().manifest().graphs;
    let families: BTreeSet<&str> = graphs.iter().map(|graph| &*graph.family).collect();
    assert!(graphs.len() >= 320, "{} graphs", graphs.len());
    assert!(families.len() >= 14, "{families:?}");
    let of = |families: &[&str]| {
        graphs.iter().filter(|graph| families.contains(&&*graph.family)).count()
    };
    assert!(of(&["gpt2"]) >= 60 && of(&["bert", "roberta"]) >= 40 && of(&["resnet"]) >= 25);
}

#[test]
fn no_two_graphs_have_the_same_opcodes_in_the_same_order() {
    let mut seen: BTreeMap<Vec<String>, &str> = BTreeMap::new();
    for graph in &library().manifest().graphs {
        let text = text(graph);
        let sequence: Vec<String> = opcode_sequence(&text).into_iter().map(str::to_owned).collect();
        assert_eq!(sequence.len() as u64, graph.size(), "{}", graph.id);
        if let Some(other) = seen.insert(sequence, &graph.id) {
            panic!("{} and {other} have the same opcodes", graph.id);
        }
    }
}

#[test]
fn training_and_test_share_nothing() {
    for split in Split::HLO_V1 {
        let (train, test) = (side(split, Side::Train), side(split, Side::Test));
        assert!(train.len() >= 20 && test.len() >= 10, "{split}: {} {}", train.len(), test.len());
        let known: BTreeSet<_> = train.iter().map(|graph| graph.fingerprint).collect();
        for graph in &test {
            assert!(!known.contains(&graph.fingerprint), "{split}: {} is in both", graph.id);
        }
    }
}

#[test]
fn near_duplicates_are_on_one_side() {
    let shingles: BTreeMap<&str, Shingles> = library()
        .manifest()
        .graphs
        .iter()
        .map(|graph| (&*graph.id, Shingles::of(&text(graph))))
        .collect();
    for split in [Split::Gpt2, Split::Diverse] {
        for test in side(split, Side::Test) {
            for train in side(split, Side::Train) {
                let alike = shingles[&*test.id].similarity(&shingles[&*train.id]);
                assert!(alike < NEAR, "{split}: {} and {} are {alike:.2} alike", test.id, train.id);
            }
        }
    }
}

#[test]
fn held_out_families_are_not_in_training() {
    for graph in side(Split::Unseen, Side::Train) {
        assert!(!UNSEEN.contains(&&*graph.super_family), "{}", graph.id);
    }
    for name in UNSEEN {
        let held_out = side(Split::Unseen, Side::Test);
        assert!(held_out.iter().any(|graph| graph.super_family == *name), "no graph of {name}");
    }
}

#[test]
fn graphs_carry_no_paths_and_no_left_out_constants() {
    for graph in &library().manifest().graphs {
        let text = text(graph);
        for unwanted in ["{...}", "source_file", "site-packages", "metadata={"] {
            assert!(!text.contains(unwanted), "{} contains {unwanted}", graph.id);
        }
    }
}

#[test]
fn an_unknown_id_is_explained() {
    let error = library().graph("hlo-v1/gpt2/no-such-graph").unwrap_err().to_string();
    assert!(error.contains("no-such-graph") && error.contains("xla-gym data list"), "{error}");
}
