"""The command line under the name `nats-server`: behavior that scripts and test harnesses rely on."""
