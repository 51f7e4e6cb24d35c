//! Subjects, in every form and flavour.

mod drops;
mod faces;
mod model;
mod owners;
mod random;
mod rig;
mod script;
mod stress;
mod tables;
mod waiting;
