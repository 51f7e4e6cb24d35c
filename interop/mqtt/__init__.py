"""Tests MQTT 3.1.1 and 5.0 from outside, with raw packets and other projects' clients. Each case runs with the
server under test, and with nats-server and mosquitto, to show that a server can pass it."""
