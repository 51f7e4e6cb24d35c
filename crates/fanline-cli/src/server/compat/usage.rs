//! The help of the nats-server front end: what is supported, and what is not yet.

/// The help, under the name that the program was started with.
pub(crate) fn usage(program: &str) -> String {
    format!("\nUsage: {program} [options]\n{OPTIONS}")
}

/// The help about TLS.
pub(crate) fn tls_usage(program: &str) -> String {
    format!("\nTLS of {program}\n{TLS}")
}

const TLS: &str = "
Clients speak TLS 1.2 or 1.3 after the server's INFO. The server needs a certificate and its key:

    --tlscert server.pem --tlskey server.key

Clients need a certificate too, of one of these authorities:

    --tlsverify --tlscacert clients.pem

Monitoring over HTTPS shows the same certificate:

    --https_port 8443

In a configuration file, which knows more (several certificates by name, versions, cipher suites,
pinned keys, a handshake before INFO, users by certificate):

    tls {
      cert_file: \"server.pem\"
      key_file:  \"server.key\"
      ca_file:   \"clients.pem\"
      verify:    true
    }

A reload reads the files again; connections that are open stay as they are.
";

const OPTIONS: &str = "
Server options:
    -a, --addr, --net <host>         Address to listen on (default: 0.0.0.0)
    -p, --port <port>                Port for clients (default: 4222, -1 picks a free one)
    -n, --name
        --server_name <name>         Name of the server (default: its id)
        --cluster_name <name>        Name of the server's cluster
    -P, --pid <file>                 Write the process id to a file
        --max_payload <size>         Largest message, headers included: 65536, 64KB (default: 1MB)
    -m, --http_port <port>           Port for monitoring over HTTP (-1 picks a free one)
    -ms, --https_port <port>         The same over HTTPS, with the certificate of the clients' TLS
    -c, --config <file>              Configuration file: docs/configuration.md
    -t                               Check the configuration file, and end
    -sl,--signal <signal>[=<pid>]    Signal a running server: ldm, stop, quit, term, reopen, reload
                                     <pid> is a process id, one that ends with *, or a pid file
        --client_advertise <string>  Address told to clients in place of the one listened on
        --ports_file_dir <dir>       Write <program>_<pid>.ports, with the ports in use, there

Logging options:
    -l, --log <file>                 Log to a file
    -T, --logtime                    Lines with time (default: true)
        --logtime_utc                Time in UTC (default: false)
    -D, --debug                      Debug lines
    -V, --trace                      Trace the protocol
    -VV                              As -V
    -DV, -DVV                        Debug and trace
        --log_size_limit <bytes>     Put the log file aside when it is as large
        --max_traced_msg_len <bytes> What a trace shows of each message; 0 is all
        --log_format <format>        text (default) or json
    -s, --syslog                     Log to syslog
    -r, --remote_syslog <url>        Log to another machine's syslog: udp://host:514

JetStream options:
    -js, --jetstream                 Keep streams
    -sd, --store_dir <dir>           Where they are kept

Authorization options:
        --user <user>                User that clients must name
        --pass <password>            Password that clients must show
        --auth <token>               Token that clients must show

TLS options:
        --tls                        Clients must come over TLS (with --tlscert and --tlskey)
        --tlscert <file>             Certificates to show, the server's own first (PEM)
        --tlskey <file>              Key of the first one (PEM)
        --tlsverify                  Clients must show a valid certificate
        --tlscacert <file>           Authorities that it must come from (PEM)

Signals:
    INT, TERM: stop   USR1: open the log file again   USR2: lame duck   HUP: reload
    QUIT: print what the threads do, and end with exit code 2

Common options:
    -h, --help                       Show this message
        --help_tls                   Show how TLS is set up
    -v, --version                    Show the version

Known to nats-server, not supported yet:
    --routes, --cluster, --cluster_listen, --cluster_advertise, --no_advertise, --connect_retries
                                                     are refused with exit code 1
    --profile                                        has no effect but a warning
";
