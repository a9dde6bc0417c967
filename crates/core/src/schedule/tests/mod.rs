//! The rules, one by one, through the scheduler as its shell uses it.

mod company;
mod desk;
mod filters;
mod histories;
mod preemption;
mod scores;
mod waiting;
