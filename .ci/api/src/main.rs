//! Prints the public API of a crate from rustdoc's JSON, without blanket implementations and those of auto traits.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args_os()
        .nth(1)
        .ok_or("usage: fanline-api JSON")?;
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    print!("{api}");
    Ok(())
}
