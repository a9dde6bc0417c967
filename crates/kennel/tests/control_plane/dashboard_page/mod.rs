//! The dashboard's page in a real browser, with real rollouts on simulated nodes. What the dashboard answers byte by byte, and whom
//! it refuses, is tested in `dashboard`.

mod accessibility;
mod changes;
mod details;
mod fixture;
mod hostile_text;
mod keyboard;
mod logs;
mod other_origin;
mod real_node;
mod reconnect;
mod report;
mod resources;
mod rollout;
mod views;
