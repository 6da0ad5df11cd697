//! Files of certificates and keys that are wrong: exit 78, before anything is sent.
#![expect(
    clippy::disallowed_methods,
    reason = "writes files that are no text, and watches the clock"
)]

use crate::support::certificates::{Authority, Issued};
use crate::support::{Mq, Ran, TextFile, pipe};

/// Nobody listens there; a file is read before that matters.
fn run(args: &[&str]) -> Ran {
    Mq::new(["publish", "-q", "q", "x"])
        .args(["-u", "amqps://127.0.0.1:1", "--timeout", "2s"])
        .args(args)
        .run()
}

/// The file is named, with what is wrong and the flag; nothing of a key is shown.
fn refused(flag: &str, text: &str, parts: &[&str]) {
    let file = TextFile::new("wrong.pem", text);
    let cert_file = issued().cert_file();
    let cert = cert_file.path();
    let args: &[&str] = match flag {
        "--client-key" => &["--client-cert", &cert],
        _ => &[],
    };
    let path = file.path();
    let ran = run(&[args, &[flag, &path]].concat()).code(78);
    let ran = ran.says(&[&path, flag]).says(parts);
    for line in text.lines().filter(|line| line.len() == 64) {
        assert!(!ran.stderr.contains(line), "{}", ran.stderr);
    }
}

fn issued() -> Issued {
    Authority::new("ca").issue("client", &[])
}

#[test]
fn each_wrong_file_is_named_with_what_is_wrong() {
    let good = issued();
    let half = &good.cert[..good.cert.len() / 2];
    let damaged = good.cert.replacen("MII", "M!I", 1);
    let no_certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let junk = format!("{no_certificate}{}", good.key);
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\naGVsbG8=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old_encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\naGVsbG8=\n-----END RSA PRIVATE KEY-----\n";
    for (flag, text, parts) in [
        (
            "--ca-cert",
            "",
            &["holds no certificate", "BEGIN CERTIFICATE"][..],
        ),
        ("--ca-cert", "hello", &["holds no certificate"]),
        (
            "--ca-cert",
            &good.key,
            &["holds no certificate", "such as a key"],
        ),
        ("--ca-cert", half, &["ends within a PEM section"]),
        ("--ca-cert", &damaged, &["is damaged"]),
        ("--ca-cert", no_certificate, &["no usable certificate"]),
        ("--client-cert", "", &["holds no certificate"]),
        ("--client-cert", &junk, &["certificate that cannot be read"]),
        (
            "--client-cert",
            &good.cert,
            &["holds no private key", "--client-key"],
        ),
        (
            "--client-key",
            "",
            &["holds no private key", "BEGIN PRIVATE KEY"],
        ),
        ("--client-key", &good.cert, &["holds no private key"]),
        (
            "--client-key",
            encrypted,
            &["encrypted", "openssl pkey -in KEY"],
        ),
        (
            "--client-key",
            old_encrypted,
            &["encrypted", "openssl pkey -in KEY"],
        ),
        (
            "--client-key",
            &issued().key,
            &["is not the one of the first certificate in"],
        ),
    ] {
        refused(flag, text, parts);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_flag() {
    for (flag, name) in [
        ("--ca-cert", "MQ_CA_CERT"),
        ("--client-cert", "MQ_CLIENT_CERT"),
    ] {
        run(&[flag, "/no/such.pem"])
            .code(78)
            .says(&["/no/such.pem", "No such file", flag, name]);
        run(&[flag, "/"]).code(78).says(&["directory", flag]);
    }
    let cert = issued().cert_file();
    run(&[
        "--client-cert",
        &cert.path(),
        "--client-key",
        "/no/such.pem",
    ])
    .code(78)
    .says(&["/no/such.pem", "--client-key (MQ_CLIENT_KEY)"]);
}

#[test]
fn der_is_told_with_how_to_convert_it() {
    let der = TextFile::new("ca.der", "\u{30}\u{81}\u{10}");
    let path = der.path();
    std::fs::write(&path, [0x30, 0x82, 0x01, 0x0a, 0x02]).expect("written");
    run(&["--ca-cert", &path])
        .code(78)
        .says(&["is not PEM but DER or PKCS#12", "openssl x509 -inform der"]);
}

#[test]
fn a_byte_order_mark_does_not_matter() {
    let good = issued();
    let (ca, both) = (Authority::new("ca").file(), good.file());
    for file in [&ca, &both] {
        let text = std::fs::read_to_string(file.path()).expect("read");
        std::fs::write(file.path(), format!("\u{feff}{text}")).expect("written");
    }
    run(&["--ca-cert", &ca.path(), "--client-cert", &both.path()])
        .code(69)
        .says(&["connection refused"]);
}

#[test]
fn a_pipe_is_waited_for_only_so_long() {
    let cert = issued().cert_file();
    let cert = cert.path();
    let (_folder, path) = pipe();
    let (cert, path) = (cert.as_str(), path.as_str());
    for args in [
        &["--ca-cert", path][..],
        &["--client-cert", path],
        &["--client-cert", cert, "--client-key", path],
        &["--password-file", path],
    ] {
        let began = std::time::Instant::now();
        Mq::new(["publish", "-q", "q", "x", "-u", "amqps://127.0.0.1:1"])
            .args(["--timeout", "300ms"])
            .args(args)
            .run()
            .code(78)
            .says(&[path, "nobody wrote it to its end within 300ms"])
            .says(&[args[args.len() - 2]]);
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    }
    // `mq wait` ends with its own limit.
    Mq::new(["wait", "--for", "300ms", "-u", "amqps://127.0.0.1:1"])
        .args(["--ca-cert", path])
        .run()
        .code(78)
        .says(&[path, "within 300ms"]);
}

#[test]
fn a_pipe_that_is_written_is_read() {
    let ca = Authority::new("ca");
    let text = std::fs::read_to_string(ca.file().path()).expect("read");
    let (_folder, path) = pipe();
    let to = path.clone();
    let writer = std::thread::spawn(move || std::fs::write(to, text).expect("written"));
    run(&["--ca-cert", &path])
        .code(69)
        .says(&["connection refused"]);
    writer.join().expect("done");
}

#[test]
fn a_file_without_an_end_is_not_read_to_it() {
    for flag in ["--ca-cert", "--client-cert", "--password-file"] {
        run(&[flag, "/dev/zero"])
            .code(78)
            .says(&["/dev/zero", "larger than 1 MiB", flag]);
    }
}

#[test]
fn a_key_without_a_certificate_is_usage() {
    run(&["--client-key", "/no/such.pem"])
        .code(64)
        .says(&["no --client-cert", "MQ_CLIENT_CERT"]);
}

#[test]
fn what_is_good_is_used_and_what_is_not_needed_is_not_read() {
    let good = issued();
    let (ca, both) = (Authority::new("ca").file(), good.file());
    run(&["--ca-cert", &ca.path(), "--client-cert", &both.path()])
        .code(69)
        .says(&["connection refused"]);
    // Set to nothing is not set.
    Mq::new(["publish", "-q", "q", "-u", "amqps://127.0.0.1:1", "x"])
        .env("MQ_CA_CERT", ca.path())
        .env("MQ_CLIENT_CERT", "")
        .env("MQ_CLIENT_KEY", "")
        .run()
        .code(69);
    let plain = Mq::new(["publish", "-v", "-q", "q", "-u", "amqp://127.0.0.1:1", "x"]);
    plain
        .env("MQ_CA_CERT", "/no/such.pem")
        .run()
        .code(69)
        .says(&["no effect", "connection refused"]);
}

#[test]
fn parameters_that_are_flags_here_are_refused_with_the_flag() {
    for (query, flag) in [
        ("cacertfile=/x", "--ca-cert FILE (MQ_CA_CERT)"),
        ("certfile=/x", "--client-cert FILE (MQ_CLIENT_CERT)"),
        ("keyfile=/x", "--client-key FILE (MQ_CLIENT_KEY)"),
        ("verify=verify_none", "--insecure"),
    ] {
        Mq::new(["publish", "-q", "q", "x"])
            .args(["-u", &format!("amqps://u:sesame@h/v?{query}")])
            .run()
            .code(78)
            .says(&[flag]);
    }
    let told = Mq::new([
        "publish",
        "-q",
        "q",
        "x",
        "-u",
        "amqp://127.0.0.1:1/v?heartbeet=3",
    ]);
    told.run()
        .code(69)
        .says(&["'heartbeet' in --url or MQ_URL has no effect"]);
}
