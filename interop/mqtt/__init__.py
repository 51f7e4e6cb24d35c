"""MQTT 3.1.1 and 5.0 from outside: raw packets and foreign clients, against the server under test and,
case by case, against nats-server and mosquitto, so that each case is known to be true of somebody."""
