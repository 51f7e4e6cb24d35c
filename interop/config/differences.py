"""Where Fanline decides otherwise on purpose, and why."""

AT_THE_CHECK = "nats-server finds out only when it starts"
UNSUPPORTED = "Fanline does not have it, and says so instead of ignoring it"
TYPING = "it was certainly not meant"

DIFFERENCES = {
    "port: 70000": AT_THE_CHECK,
    "port: -3": AT_THE_CHECK,
    "listen: 0.0.0.0:70000": AT_THE_CHECK,
    "max_payload: -1": "a server that takes messages of any size has no memory left sooner or later",
    "max_payload: 10e": TYPING,
    "max_connections: -1k": TYPING,
    "host: a\0": TYPING,
    "ping_interval: '-1s'": TYPING,
    "write_timeout: retry": UNSUPPORTED,
    "gateway { name: A }": UNSUPPORTED,
    "jetstream { unique_tag: az }": UNSUPPORTED,
    "max_sub_tokens: 16": UNSUPPORTED,
    "prof_port: 6060": UNSUPPORTED,
    "http_base_path: /x": UNSUPPORTED,
}
