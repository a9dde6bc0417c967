//! `kennel token` and `kennel agent` as people use them: a line is printed on the server and pasted on a machine,
//! which becomes a node and stays one; and machines that are refused, and why.

mod certificates;
mod fixture;
mod one_agent;
mod tokens;
