"""Raw bytes sent to nats-server and to the server under test, and what each answers, compared."""
