"""The command line under nats-server's own name: what scripts and test harnesses rely on."""
