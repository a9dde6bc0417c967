//! Tests that read as a terminal session and are run against a live server.
//!
//! ```text
//! # A comment.
//! $ kubectl create -f - <<EOF
//! > apiVersion: v1
//! > kind: ConfigMap
//! > metadata: {name: colours}
//! > EOF
//! configmap/colours created
//!
//! $ kubectl get configmap colours             # until
//! NAME      DATA   AGE
//! colours   0      [..]
//!
//! $ kubectl get configmap nothing             # from 1.32
//! Error from server (NotFound): configmaps "nothing" not found
//! ? 1
//! ```
//!
//! - `$ ` starts a command for `sh`, `> ` continues it, and so do the lines of a here-document and those after a
//!   backslash. `kubectl` is the kubectl under test. What is exported, and the directory, stay.
//! - The lines below, up to the next command, are what the terminal shows: output and errors together.
//!   Blank lines at their end do not count; runs of blanks within a line count as one.
//! - `[..]` stands for any text within a line, a line `...` for any number of lines.
//! - `? 1` as the last line is the exit code, where it is not 0.
//! - Marks after the command, separated by commas: `# until` (for readers: `# after a moment`) repeats the command
//!   until it shows this, with a deadline; `# in another terminal` leaves it running when it has shown this;
//!   `# only 1.20` leaves the command out with any other kubectl, `# from 1.32` with an older one.
//! - A line that ends in `" deleted` stands also for what newer kubectls add to it: `from default namespace`.
//! - `^C` ends the latest command in another terminal, `^C kennel up` the latest that begins like this.
//! - A line that starts with `# ` between commands is a comment.
//!
//! [`page`] finds the same in pages for people: blocks of the kind `console`.

mod compare;
pub mod page;
mod parse;
mod run;

pub use run::Terminal;
