//! The DaemonSet controller (and, in `placing`, the scheduler) when things go wrong: an API that refuses, loses answers and breaks
//! watches; a controller that is killed at any instant; two of them at once; processes of their own.

mod api_faults;
mod chart;
mod fixture;
mod kills;
mod pod_log;
mod processes;
mod scheduler_faults;
mod two_controllers;
