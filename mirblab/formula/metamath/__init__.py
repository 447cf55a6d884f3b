"""metamath: the statements of a Metamath database as terms, the check of a proof, and a bounded search for one."""
