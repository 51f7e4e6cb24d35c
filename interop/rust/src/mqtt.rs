//! rumqttc in both versions of MQTT, on a broker that is already running.
//!
//! rumqttc has separate types for each version. The macros here serve both versions.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::peers::{Outcome, WAIT, equal, numbers};

/// Capacity of queues. It is larger than the number of messages in flight in any case.
const QUEUE: usize = 4096;

/// The options of a client that a case requests.
struct Wants<'a> {
    port: u16,
    id: &'a str,
    /// Whether the session outlives the connection.
    keeps: bool,
    /// Topic of a will message with QoS 1.
    will: Option<&'a str>,
}

impl<'a> Wants<'a> {
    fn plain(port: u16, id: &'a str) -> Self {
        Self {
            port,
            id,
            keeps: false,
            will: None,
        }
    }
}

/// An event that a client reports.
enum Heard {
    Connected {
        session_present: bool,
    },
    Subscribed,
    Message(Message),
    /// A PUBACK or PUBCOMP has arrived.
    Acknowledged,
}

/// A message, independent of the MQTT version.
#[derive(Debug, PartialEq)]
struct Message {
    topic: String,
    payload: String,
    qos: u8,
    retain: bool,
}

macro_rules! client {
    () => {
        fn level(qos: u8) -> QoS {
            match qos {
                0 => QoS::AtMostOnce,
                1 => QoS::AtLeastOnce,
                _ => QoS::ExactlyOnce,
            }
        }

        /// A client that has connected.
        struct Client {
            client: AsyncClient,
            heard: mpsc::Receiver<Heard>,
            events: JoinHandle<()>,
            session_present: bool,
        }

        impl Client {
            async fn open(wants: &Wants<'_>) -> anyhow::Result<Self> {
                let (client, mut events) = AsyncClient::new(options(wants), QUEUE);
                let (sender, mut heard) = mpsc::channel(QUEUE);
                let events = tokio::spawn(async move {
                    while let Ok(event) = events.poll().await {
                        if let Some(heard) = understand(event) {
                            if sender.send(heard).await.is_err() {
                                return;
                            }
                        }
                    }
                });
                let first = timeout(WAIT, heard.recv()).await.context("no CONNACK")?;
                let Some(Heard::Connected { session_present }) = first else {
                    bail!("not let in");
                };
                Ok(Self {
                    client,
                    heard,
                    events,
                    session_present,
                })
            }

            async fn next(&mut self) -> anyhow::Result<Heard> {
                let next = timeout(WAIT, self.heard.recv()).await;
                next.context("nothing came")?
                    .context("the connection ended")
            }

            async fn subscribe(&mut self, topic: &str, qos: u8) -> Outcome {
                self.client.subscribe(topic, level(qos)).await?;
                match self.next().await? {
                    Heard::Subscribed => Ok(()),
                    _ => bail!("not subscribed"),
                }
            }

            /// Publishes all payloads, and waits for each acknowledgement.
            async fn publish_all(&mut self, topic: &str, qos: u8, payloads: &[String]) -> Outcome {
                for payload in payloads {
                    let payload = payload.clone().into_bytes();
                    self.client
                        .publish(topic, level(qos), false, payload)
                        .await?;
                }
                let mut due = if qos == 0 { 0 } else { payloads.len() };
                while due > 0 {
                    match self.next().await? {
                        Heard::Acknowledged => due -= 1,
                        _ => bail!("something else than an acknowledgement"),
                    }
                }
                Ok(())
            }

            async fn message(&mut self) -> anyhow::Result<Message> {
                loop {
                    if let Heard::Message(message) = self.next().await? {
                        return Ok(message);
                    }
                }
            }

            async fn payloads(&mut self, count: usize) -> anyhow::Result<Vec<String>> {
                let mut payloads = Vec::with_capacity(count);
                for _ in 0..count {
                    payloads.push(self.message().await?.payload);
                }
                Ok(payloads)
            }

            async fn leave(self) -> Outcome {
                self.client.disconnect().await?;
                // The task ends with the connection.
                timeout(WAIT, self.events).await.context("it stays")??;
                Ok(())
            }

            /// Closes the connection without a DISCONNECT.
            fn crash(self) {
                self.events.abort();
            }
        }

        pub async fn publish_and_subscribe(port: u16) -> Outcome {
            let mut sender = Client::open(&Wants::plain(port, &name("a"))).await?;
            let mut receiver = Client::open(&Wants::plain(port, &name("b"))).await?;
            for qos in 0..3 {
                let topic = name(&format!("plain/{qos}"));
                receiver.subscribe(&topic, qos).await?;
                sender.publish_all(&topic, qos, &numbers(1000)).await?;
                equal(receiver.payloads(1000).await?, numbers(1000), "payloads")?;
                sender
                    .publish_all(&topic, qos, &["last".to_owned()])
                    .await?;
                equal(&receiver.message().await?.qos, &qos, "QoS")?;
            }
            sender.leave().await?;
            receiver.leave().await
        }

        pub async fn a_session_goes_on(port: u16) -> Outcome {
            let (id, topic) = (name("session"), name("kept"));
            let wants = Wants {
                keeps: true,
                ..Wants::plain(port, &id)
            };
            let mut client = Client::open(&wants).await?;
            ensure!(!client.session_present, "a session before the first");
            client.subscribe(&topic, 2).await?;
            client.leave().await?;
            let mut sender = Client::open(&Wants::plain(port, &name("sender"))).await?;
            sender.publish_all(&topic, 1, &numbers(50)).await?;
            sender.publish_all(&topic, 2, &numbers(50)).await?;
            let mut client = Client::open(&wants).await?;
            ensure!(client.session_present, "the session is gone");
            let all = [numbers(50), numbers(50)].concat();
            equal(&client.payloads(100).await?, &all, "payloads")?;
            client.leave().await?;
            sender.leave().await
        }

        pub async fn a_will_is_sent(port: u16) -> Outcome {
            let topic = name("will");
            let mut watcher = Client::open(&Wants::plain(port, &name("watcher"))).await?;
            watcher.subscribe(&topic, 1).await?;
            let id = name("gone");
            let wants = Wants {
                will: Some(&topic),
                ..Wants::plain(port, &id)
            };
            Client::open(&wants).await?.crash();
            let message = watcher.message().await?;
            equal(message.payload.as_str(), "gone", "the will")?;
            watcher.leave().await
        }

        pub async fn what_is_retained_waits(port: u16) -> Outcome {
            let topic = name("retained");
            let sender = Client::open(&Wants::plain(port, &name("sender"))).await?;
            sender
                .client
                .publish(&topic, level(0), true, "kept")
                .await?;
            sender.leave().await?;
            let mut later = Client::open(&Wants::plain(port, &name("later"))).await?;
            later.client.subscribe(&topic, level(1)).await?;
            let wanted = Message {
                topic: topic.clone(),
                payload: "kept".to_owned(),
                qos: 0,
                retain: true,
            };
            equal(&later.message().await?, &wanted, "retained")?;
            later.client.publish(&topic, level(0), true, "").await?;
            later.leave().await
        }
    };
}

/// MQTT 3.1.1.
pub mod v4 {
    use rumqttc::{AsyncClient, Event, Incoming, LastWill, MqttOptions, QoS};

    use super::*;

    fn name(of: &str) -> String {
        format!("rumqttc/4/{of}")
    }

    fn options(wants: &Wants<'_>) -> MqttOptions {
        let mut options = MqttOptions::new(wants.id, "127.0.0.1", wants.port);
        options.set_keep_alive(Duration::from_secs(60));
        options.set_clean_session(!wants.keeps);
        if let Some(topic) = wants.will {
            options.set_last_will(LastWill::new(topic, "gone", QoS::AtLeastOnce, false));
        }
        options
    }

    fn understand(event: Event) -> Option<Heard> {
        match event {
            Event::Incoming(Incoming::ConnAck(connack)) => Some(Heard::Connected {
                session_present: connack.session_present,
            }),
            Event::Incoming(Incoming::SubAck(_)) => Some(Heard::Subscribed),
            Event::Incoming(Incoming::PubAck(_) | Incoming::PubComp(_)) => {
                Some(Heard::Acknowledged)
            }
            Event::Incoming(Incoming::Publish(publish)) => Some(Heard::Message(Message {
                topic: publish.topic,
                payload: String::from_utf8_lossy(&publish.payload).into_owned(),
                qos: publish.qos as u8,
                retain: publish.retain,
            })),
            _ => None,
        }
    }

    client!();
}

/// MQTT 5.0.
pub mod v5 {
    use rumqttc::v5::mqttbytes::QoS;
    use rumqttc::v5::mqttbytes::v5::{LastWill, Packet};
    use rumqttc::v5::{AsyncClient, Event, MqttOptions};

    use super::*;

    fn name(of: &str) -> String {
        format!("rumqttc/5/{of}")
    }

    fn options(wants: &Wants<'_>) -> MqttOptions {
        let mut options = MqttOptions::new(wants.id, "127.0.0.1", wants.port);
        options.set_keep_alive(Duration::from_secs(60));
        options.set_clean_start(!wants.keeps);
        if wants.keeps {
            options.set_session_expiry_interval(Some(3600));
        }
        if let Some(topic) = wants.will {
            let will = LastWill::new(topic, "gone", QoS::AtLeastOnce, false, None);
            options.set_last_will(will);
        }
        options
    }

    fn understand(event: Event) -> Option<Heard> {
        match event {
            Event::Incoming(Packet::ConnAck(connack)) => Some(Heard::Connected {
                session_present: connack.session_present,
            }),
            Event::Incoming(Packet::SubAck(_)) => Some(Heard::Subscribed),
            Event::Incoming(Packet::PubAck(_) | Packet::PubComp(_)) => Some(Heard::Acknowledged),
            Event::Incoming(Packet::Publish(publish)) => Some(Heard::Message(Message {
                topic: String::from_utf8_lossy(&publish.topic).into_owned(),
                payload: String::from_utf8_lossy(&publish.payload).into_owned(),
                qos: publish.qos as u8,
                retain: publish.retain,
            })),
            _ => None,
        }
    }

    client!();
}
