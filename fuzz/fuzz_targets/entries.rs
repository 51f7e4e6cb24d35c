#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanline_fuzz::consensus_checks::entries::check(data));
