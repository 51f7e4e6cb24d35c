//! Subjects, in every form and flavor.

mod drops;
mod local_rig;
mod model;
mod owners;
mod random;
mod rig;
mod script;
mod specific;
mod stress;
mod tables;
mod waiting;
