//! Builds the agent program, to be embedded in a release binary.
//!
//! Linked alone and for size, it needs less than half of the memory that `kennel agent` would need within the whole
//! binary. Other builds embed nothing and run the agent in-process.

use kennel_embed::Program;

fn main() {
    let agent = Program {
        package: "kennel-agent",
        profile: "agent",
        features: "embedded",
    };
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        agent.build();
        agent.compress();
    } else {
        agent.omit();
    }
}
