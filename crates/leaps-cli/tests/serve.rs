//! `leaps serve`, spoken to over a socket: the page, events while files grow, and requests that must be refused.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use common::shown::wrong;
use common::{fails, leaps, stdout, train};
use serde_json::Value;

/// The program at work, ended with the test.
struct Server {
    child: Child,
    port: u16,
    /// The run that is served.
    run: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path().join("a");
        stdout(&train(&run, "--steps 40"));
        let mut child = leaps(&["serve", run.to_str().unwrap(), "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let port = url.trim().strip_prefix("http://127.0.0.1:").and_then(|u| u.strip_suffix('/'));
        let port = port.unwrap_or_else(|| panic!("{url}")).parse().unwrap();
        Server { child, port, run, _scratch: scratch }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // Far beyond anything that is waited for: a test that hangs ends.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Send bytes, and read all that comes back.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn get(&self, path: &str) -> String {
        self.send(
            format!("GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", self.port).as_bytes(),
        )
    }

    /// Connect to the events of a page.
    fn events(&self, version: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        write!(stream, "GET /events?page={version} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        BufReader::new(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Read events until one has this name; what it says.
fn next(events: &mut BufReader<TcpStream>, name: &str) -> String {
    let wanted = format!("event: {name}");
    let mut found = false;
    loop {
        let mut line = String::new();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "no {name}");
        let line = line.trim_end();
        match line.strip_prefix("data: ") {
            Some(data) if found => return data.to_owned(),
            _ => found |= line == wanted,
        }
    }
}

fn body(answer: &str) -> &str {
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).and_then(|(_, rest)| rest.split_once(end)).unwrap().0
}

/// Every number on a page that says where it is from is what the results say; how many there are.
fn check_numbers(page: &str, run: &Path) -> usize {
    let results: Value =
        serde_json::from_str(&fs::read_to_string(run.join("results.json")).unwrap()).unwrap();
    let mut count = 0;
    for number in page.split("data-key=\"").skip(1) {
        let (key, rest) = number.split_once("\" data-value=\"").unwrap();
        let (carried, rest) = rest.split_once("\">").unwrap();
        assert_eq!(wrong(&results, key, carried, rest.split_once('<').unwrap().0), None);
        count += 1;
    }
    count
}

#[test]
fn the_page_is_the_report_and_is_renewed_while_files_change() {
    let server = Server::start();
    let answer = server.get("/");
    for header in [
        "Content-Security-Policy: default-src 'none'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
    ] {
        assert!(answer.contains(header), "no {header} in {answer:.900}");
    }
    let page = body(&answer);
    assert!(page.contains("Ising 3x3") && page.contains("finished, step 40/40"), "{page:.900}");
    assert!(check_numbers(page, &server.run) > 5);
    assert!(
        page.contains("<script src=\"live.js\">")
            && body(&server.get("/live.js")).contains("EventSource")
    );
    let version = between(page, "data-page=\"", "\"");
    let mut events = server.events(version);
    let status: Value = serde_json::from_str(&next(&mut events, "status")).unwrap();
    assert_eq!((status["step"].as_u64(), &status["state"]), (Some(40), &"finished".into()));
    // A step more.
    let metrics = server.run.join("metrics.jsonl");
    let line = "{\"step\":41,\"loss\":12345.5,\"norm\":1.0,\"lr\":0.001,\"seconds\":99.0}\n";
    let text = fs::read_to_string(&metrics).unwrap();
    fs::write(&metrics, text + line).unwrap();
    let status: Value = serde_json::from_str(&next(&mut events, "status")).unwrap();
    assert_eq!(status["step"].as_u64(), Some(41));
    let newer = next(&mut events, "page");
    assert_ne!(newer, version);
    let part = server.get("/part");
    assert!(body(&part).contains("41</b>"), "{part:.2000}");
    // Other results: their numbers are on the page without loading it again.
    let file = server.run.join("results.json");
    let mut results: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    results["log_z"]["mean"] = 123.25.into();
    fs::write(&file, results.to_string()).unwrap();
    next(&mut events, "page");
    let part = server.get("/part");
    assert!(body(&part).contains("data-key=\"log_z.mean\" data-value=\"123.25\""));
    assert!(check_numbers(body(&part), &server.run) > 5);
    // Who comes with an old page hears at once of the new one.
    assert!(
        next(&mut server.events(version), "page").parse::<u64>().unwrap() > newer.parse().unwrap()
    );
    let status: Value = serde_json::from_str(body(&server.get("/status"))).unwrap();
    assert_eq!(status["step"].as_u64(), Some(41));
}

#[test]
fn hostile_requests_are_refused() {
    let server = Server::start();
    let here = "Host: 127.0.0.1\r\n";
    let long = format!("X: {}\r\n", "a".repeat(20_000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "403 "),
        (format!("GET / HTTP/1.1\r\nHost: evil.example:{}\r\n\r\n", server.port), "403 "),
        ("GET /events HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n".to_owned(), "403 "),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400 "),
        (format!("POST / HTTP/1.1\r\n{here}Content-Length: 2\r\n\r\nhi"), "405 "),
        (format!("PUT /results.json HTTP/1.1\r\n{here}\r\n"), "405 "),
        (format!("DELETE / HTTP/1.1\r\n{here}\r\n"), "405 "),
        (format!("GET /../../../../etc/passwd HTTP/1.1\r\n{here}\r\n"), "404 "),
        (format!("GET /..%2f..%2fetc/passwd HTTP/1.1\r\n{here}\r\n"), "404 "),
        (format!("GET /config.toml HTTP/1.1\r\n{here}\r\n"), "404 "),
        (format!("GET //etc/passwd HTTP/1.1\r\n{here}\r\n"), "404 "),
        (format!("GET http://127.0.0.1/ HTTP/1.1\r\n{here}\r\n"), "400 "),
        (format!("GET / HTTP/1.1\r\n{here}{long}\r\n"), "431 "),
        (format!("GET /{} HTTP/1.1\r\n{here}\r\n", "a".repeat(9000)), "431 "),
        ("\0\u{1}\u{2}\r\n\r\n".to_owned(), "400 "),
        // Nothing more comes: it waits, but not for ever.
        (format!("GET / HTTP/1.1\r\n{here}"), "408 "),
    ] {
        let answer = server.send(request.as_bytes());
        let wanted = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&wanted), "{request:.80}: {answer:.200}");
        assert!(!answer.contains("root:"), "{answer}");
        assert!(answer.contains("Content-Security-Policy: default-src 'none'"), "{answer}");
    }
    let answer = server.send(format!("POST / HTTP/1.1\r\n{here}\r\n").as_bytes());
    assert!(answer.contains("\r\nAllow: GET\r\n"), "{answer}");
    assert!(server.get("/").contains("Ising 3x3"), "it still answers");
}

/// Nobody on the network is answered, and on this machine only by the address that is printed.
#[cfg(target_os = "linux")]
#[test]
fn only_the_loopback_address_is_listened_to() {
    use std::net::{IpAddr, Ipv6Addr, UdpSocket};

    let server = Server::start();
    assert!(server.get("/").contains("Ising 3x3"));
    // All of 127.0.0.0/8 is this machine's; the address that others know it by is that of the way to them, which nothing is sent along.
    let mut others: Vec<IpAddr> = vec![[127, 0, 0, 2].into(), Ipv6Addr::LOCALHOST.into()];
    let outward = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    if outward.connect(("192.0.2.1", 9)).is_ok() {
        others.push(outward.local_addr().unwrap().ip());
    }
    println!("{others:?}");
    for address in others {
        let answer = TcpStream::connect((address, server.port));
        assert!(answer.is_err(), "{address} answers");
    }
}

#[test]
fn connections_are_counted() {
    let server = Server::start();
    // All who wait for events are heard, but for those beyond the limit.
    let mut waiting: Vec<BufReader<TcpStream>> = Vec::new();
    for _ in 0..16 {
        let mut events = server.events("0");
        next(&mut events, "page");
        waiting.push(events);
    }
    let mut line = String::new();
    server.events("0").read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 503 "), "{line}");
    // Pages are answered all the same, until there is no room at all.
    assert!(server.get("/").contains("Ising 3x3"));
    let silent: Vec<TcpStream> = (0..16).map(|_| server.connect()).collect();
    let mut one_more = server.connect();
    let mut answer = String::new();
    one_more.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop((waiting, silent));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let empty = scratch.path().to_str().unwrap();
    fails(&["serve", empty], 2, &["DIR = ", "directory of a training run"]);
    fails(&["serve", "/nowhere/run"], 4, &["/nowhere/run", common::NOT_FOUND]);
    let server = Server::start();
    let (run, port) = (server.run.to_str().unwrap(), server.port.to_string());
    fails(&["serve", run, "--port", &port], 2, &["--port = ", "in use", "--port 0"]);
    fails(&["serve", run, "--port", "70000"], 2, &["--port = 70000: must be a whole number"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_with_130() {
    let mut server = Server::start();
    let mut events = server.events("0");
    next(&mut events, "page");
    // SAFETY: two numbers are passed by value; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(server.child.id() as i32, libc::SIGINT) }, 0);
    let mut words = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(130), "{words}");
    let tunnel = format!("ssh -L {0}:127.0.0.1:{0} HOST", server.port);
    assert!(words.contains(&tunnel) && words.contains("stopped by Ctrl-C"), "{words}");
    assert!(!words.contains("error"), "{words}");
    // Whoever listened is let go.
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
}
