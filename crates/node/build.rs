//! Builds the shim that the process runtime starts for each container, to be embedded in our own binary.
//!
//! It is a program of its own because one runs per container: linked alone, it needs a fifth of the memory that it
//! would need as a subcommand of the whole binary.

use kennel_embed::Program;

fn main() {
    let shim = Program {
        package: "kennel-shim",
        profile: "shim",
        features: "",
    };
    shim.build();
    shim.compress();
}
