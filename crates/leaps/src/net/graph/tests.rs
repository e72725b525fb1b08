//! Tests of the network on graphs with loops, without bonds and in parts.

use super::*;
use crate::net::testing::{self, Harness};
use crate::net::{Net, NetSpec};
use crate::target::{Interaction, Pairwise};

fn graph(sites: usize, bonds: &[(u32, u32)]) -> Graph {
    let mut neighbours = vec![Vec::new(); sites];
    for &(i, j) in bonds {
        neighbours[i as usize].push(j);
        neighbours[j as usize].push(i);
    }
    Graph::from_neighbours(neighbours)
}

fn complete(sites: u32) -> Graph {
    let bonds: Vec<(u32, u32)> = (0..sites).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    graph(sites as usize, &bonds)
}

/// A ring with chords: many short loops.
fn chords(sites: u32) -> Graph {
    let bonds: Vec<(u32, u32)> =
        (0..sites).flat_map(|i| [(i, (i + 1) % sites), (i, (i * i + 3) % sites)]).collect();
    let bonds: Vec<(u32, u32)> = bonds.into_iter().filter(|(i, j)| i != j).collect();
    graph(sites as usize, &bonds)
}

#[test]
fn gradients_are_finite_differences_and_outputs_are_hollow() {
    for (graph, q, channels, orders, head) in [
        (chords(11), 2, 3, 2, 5),
        (chords(7), 3, 9, 1, 4),
        (complete(6), 5, 4, 1, 3),
        (complete(9), 2, 8, 3, 6),
        (graph(6, &[(0, 1), (3, 4), (4, 5), (5, 3), (0, 1)]), 2, 5, 2, 3),
    ] {
        let io = if q == 2 { 1 } else { q };
        let spec = HollowGraphSpec { channels, orders, head: Some(head) };
        let network = HollowGraph::build(&spec, &graph, io, io);
        testing::check_network(&network, graph.sites(), io, io);
        testing::check_conditioned(&network.conditioned_on(1), graph.sites(), io, io, 1);
    }
}

#[test]
fn messages_come_from_all_neighbours_and_from_earlier_steps_only() {
    let graph = chords(10);
    let spec = HollowGraphSpec { channels: 4, orders: 1, head: Some(4) };
    let network = HollowGraph::build(&spec, &graph, 1, 1);
    for pair in network.orders.chunks(2) {
        let met = pair.iter().map(|order| (0..10).map(|k| order.messages(k).len()).sum::<usize>());
        assert_eq!(met.sum::<usize>(), graph.bonds());
        for order in pair {
            let mut sites = order.sites.clone();
            sites.sort_unstable();
            assert_eq!(sites, (0..10).collect::<Vec<u32>>());
            for step in 0..10 {
                assert!(order.messages(step).iter().all(|m| (m.from as usize) < step));
            }
        }
    }
}

impl HollowGraph {
    /// Break the last order: two of its steps stand at the same site, and the second collects what the first passed on.
    pub(crate) fn let_a_message_return(&mut self) {
        let order = self.orders.last_mut().unwrap();
        let step = (1..order.sites.len()).find(|&k| !order.messages(k).is_empty()).unwrap();
        let sender = order.messages(step)[0].from as usize;
        order.sites[sender] = order.sites[step];
    }
}

#[test]
fn outputs_do_not_depend_on_the_site_s_own_value() {
    for (graph, orders) in [(chords(11), 1), (chords(23), 3), (complete(9), 2)] {
        let spec = HollowGraphSpec { channels: 5, orders, head: Some(6) };
        let network = HollowGraph::build(&spec, &graph, 1, 1);
        let harness = Harness::new(&network, network.sites, 1, 1, 3);
        assert_eq!(harness.first_leak(&harness.parameters(3)), None);
    }
}

/// Any energy, without bonds to speak of.
struct Opaque;

impl Target for Opaque {
    fn sites(&self) -> usize {
        5
    }
    fn q(&self) -> usize {
        3
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        f64::from(x[0] * x[4])
    }
}

#[test]
fn the_network_is_built_from_a_file() {
    let glass =
        Pairwise::from_edges(Interaction::Ising, 4, 2, &[(0, 1, 1.0), (1, 2, -1.0), (2, 0, 1.0)])
            .unwrap();
    let spec: NetSpec = serde_json::from_str(r#"{"kind": "hollow-graph", "channels": 9}"#).unwrap();
    assert!(Net::new(&spec, &glass).unwrap().parameters() > 0);
    let bonds = |net: Net| net.tensors().iter().find(|t| t.name == "bond").unwrap().shape[0];
    assert_eq!(bonds(Net::new(&spec, &glass).unwrap()), 6);
    assert_eq!(bonds(Net::new(&spec, &Opaque).unwrap()), 20);
    for (spec, key) in [
        (HollowGraphSpec { channels: 0, ..Default::default() }, "network.channels = 0"),
        (HollowGraphSpec { orders: 0, ..Default::default() }, "network.orders = 0"),
        (HollowGraphSpec { head: Some(0), ..Default::default() }, "network.head = 0"),
    ] {
        let error = Net::new(&NetSpec::HollowGraph(spec), &glass).unwrap_err().to_string();
        assert!(error.starts_with(key), "{error}");
    }
}
