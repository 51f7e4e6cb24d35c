//! Stand-in until the command line lands.
fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("fanline: v0.1.0");
        return Ok(());
    }
    let mut options = fanline_server::Options::default();
    let args: Vec<String> = std::env::args().collect();
    for pair in args.windows(2) {
        match pair[0].as_str() {
            "-p" => options.port = pair[1].parse()?,
            "-a" => options.host = pair[1].clone(),
            "--shards" => options.shards = pair[1].parse().ok(),
            _ => {}
        }
    }
    let handle = fanline_server::Server::start(options)?;
    println!("{:?}", handle.addresses());
    loop {
        std::thread::park();
    }
}
