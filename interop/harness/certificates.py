"""Certificates for servers and clients of one case."""

import os
import subprocess


def self_signed(folder: str, name: str, names: str = "DNS:localhost,IP:127.0.0.1") -> tuple[str, str]:
    """Creates `NAME.pem` and its key `NAME.key`. Returns both paths. `names` are the alternative names."""
    pem, key = os.path.join(folder, f"{name}.pem"), os.path.join(folder, f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "30", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}"]
    # rustls does not accept the certificate of an authority as that of a client.
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", pem]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return pem, key


def authority(folder: str) -> tuple[str, str]:
    """Creates the certificate `authority.pem` of an authority, and its key. Returns both paths."""
    pem, key = os.path.join(folder, "authority.pem"), os.path.join(folder, "authority.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "30", "-subj", "/CN=authority", "-addext", "basicConstraints=critical,CA:TRUE"]
    subprocess.run([*command, "-keyout", key, "-out", pem], check=True, stderr=subprocess.DEVNULL)
    return pem, key


def signed(folder: str, by: tuple[str, str], name: str, subject: str, names: str) -> tuple[str, str]:
    """Creates `NAME.pem`, which an authority signs, and its key `NAME.key`. Returns both paths. `names` are the
    alternative names."""
    pem, key, request, extensions = [os.path.join(folder, f"{name}.{end}") for end in ("pem", "key", "csr", "ext")]
    command = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-subj", subject, "-keyout", key, "-out", request]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with open(extensions, "w", encoding="utf-8") as file:
        file.write(f"subjectAltName={names}\nbasicConstraints=critical,CA:FALSE\n")
    command = ["openssl", "x509", "-req", "-in", request, "-CA", by[0], "-CAkey", by[1], "-CAcreateserial"]
    command += ["-days", "30", "-extfile", extensions, "-out", pem]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return pem, key
