"""proof_graph: what earlier proofs use, as evidence for the premises of a new theorem."""
