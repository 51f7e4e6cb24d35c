#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanline_fuzz::checks::gateway::check(data));
