//! Requests and answers of a small server: GET only, from this machine only, of bounded size and time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Longer requests are refused.
const MOST_BYTES: usize = 8 * 1024;
/// Slower ones too.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a read waits before it looks whether the program ends.
const BLINK: Duration = Duration::from_millis(200);
/// What a client that was refused has still to say is thrown away up to here, so that it reads why.
const MOST_LEFT: usize = 1 << 20;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no request.
    Malformed,
    /// It names another host: a page from elsewhere that had its name lead here.
    ForeignHost,
    /// There is nothing there.
    NotFound,
    /// It is no GET.
    Method,
    /// It takes too long to come.
    Slow,
    /// It is too long.
    Long,
    /// Too many are being answered.
    Busy,
}

impl Refusal {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Refusal::Malformed => ("400 Bad Request", "this is no request"),
            Refusal::ForeignHost => ("403 Forbidden", "the host must be 127.0.0.1 or localhost"),
            Refusal::NotFound => ("404 Not Found", "there is nothing here"),
            Refusal::Method => ("405 Method Not Allowed", "only GET is answered"),
            Refusal::Slow => ("408 Request Timeout", "the request took too long to come"),
            Refusal::Long => ("431 Request Header Fields Too Large", "the request is too long"),
            Refusal::Busy => ("503 Service Unavailable", "too many are connected"),
        }
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The path, from its slash on.
    pub path: String,
    /// What follows the question mark.
    pub query: String,
}

impl Request {
    /// Read one; `None` if the client, or the program, ends before that.
    pub fn read(
        stream: &mut TcpStream,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Result<Self, Refusal>> {
        let _ = stream.set_read_timeout(Some(BLINK));
        let (begun, mut bytes, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
        loop {
            match stream.read(&mut part) {
                Ok(0) => return None,
                Ok(n) => bytes.extend(&part[..n]),
                Err(error) if waits(&error) => {}
                Err(_) => return None,
            }
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                if end > MOST_BYTES {
                    return Some(Err(Refusal::Long));
                }
                let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Refusal::Malformed);
                return Some(head.and_then(Self::parse));
            }
            if bytes.len() > MOST_BYTES {
                return Some(Err(Refusal::Long));
            }
            if begun.elapsed() > PATIENCE {
                return Some(Err(Refusal::Slow));
            }
            if stopped() {
                return None;
            }
        }
    }

    /// The lines of a request without its end.
    fn parse(head: &str) -> Result<Self, Refusal> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refusal::Malformed);
        };
        let mut hosts = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(token) {
                return Err(Refusal::Malformed);
            }
            if name.eq_ignore_ascii_case("host") {
                hosts.push(value.trim());
            }
        }
        let [host] = hosts[..] else { return Err(Refusal::Malformed) };
        if !is_here(host) {
            return Err(Refusal::ForeignHost);
        }
        if method != "GET" {
            return Err(Refusal::Method);
        }
        if !target.starts_with('/') {
            return Err(Refusal::Malformed);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Request { path: path.to_owned(), query: query.to_owned() })
    }
}

/// Whether a host is this machine, at any port: that of a tunnel is its user's choice.
fn is_here(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':').or(rest.is_empty().then_some(""))),
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, Some("")),
        },
    };
    let port = port.is_some_and(|port| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit()));
    port && (name == "127.0.0.1" || name == "::1" || name.eq_ignore_ascii_case("localhost"))
}

/// Whether a read has only to be made again.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// What every answer says.
fn head(status: &str, kind: &str, policy: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: {policy}\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
    )
}

/// The policy of what is no page.
pub const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// Send what was asked for.
pub fn answer(stream: &mut TcpStream, kind: &str, policy: &str, body: &str) -> io::Result<()> {
    let head = head("200 OK", kind, policy);
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    stream.shutdown(Shutdown::Write)
}

/// Begin an answer without an end.
pub fn begin_events(stream: &mut TcpStream) -> io::Result<()> {
    write!(stream, "{}\r\n", head("200 OK", "text/event-stream", NOTHING))
}

/// Say why nothing is sent.
pub fn refuse(stream: &mut TcpStream, why: Refusal) -> io::Result<()> {
    let (status, words) = why.words();
    let head = head(status, "text/plain; charset=utf-8", NOTHING);
    let allow = if why == Refusal::Method { "Allow: GET\r\n" } else { "" };
    write!(stream, "{head}{allow}Content-Length: {}\r\n\r\n{words}\n", words.len() + 1)?;
    stream.shutdown(Shutdown::Write)?;
    // A connection that is closed with something unread in it takes the answer with it.
    let (begun, mut left, mut part) = (Instant::now(), MOST_LEFT, [0; 4096]);
    while left > 0 && begun.elapsed() < PATIENCE {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => left = left.saturating_sub(n),
            Err(_) => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[&str]) -> Result<Request, Refusal> {
        Request::parse(&lines.join("\r\n"))
    }

    #[test]
    fn hosts_are_this_machine() {
        for host in
            ["127.0.0.1", "127.0.0.1:8080", "localhost:9000", "LocalHost", "[::1]:80", "[::1]"]
        {
            assert!(is_here(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8080",
            "127.0.0.2",
            "localhost:80a",
            "localhost:8080:1",
            "[::1",
            "[::1]x",
            "evil.example:127.0.0.1",
            "0.0.0.0",
            "user@localhost",
        ] {
            assert!(!is_here(host), "{host}");
        }
    }

    #[test]
    fn requests_are_read_strictly() {
        let host = "Host: 127.0.0.1";
        let good = parsed(&["GET /events?page=3 HTTP/1.1", host, "Accept: */*"]).unwrap();
        assert_eq!((good.path.as_str(), good.query.as_str()), ("/events", "page=3"));
        for (lines, why) in [
            (&["GET / HTTP/1.1"][..], Refusal::Malformed),
            (&["GET / HTTP/1.1", host, host], Refusal::Malformed),
            (&["GET / HTTP/1.1", "Host: evil.example"], Refusal::ForeignHost),
            (&["POST / HTTP/1.1", "Host: evil.example"], Refusal::ForeignHost),
            (&["POST / HTTP/1.1", host], Refusal::Method),
            (&["HEAD / HTTP/1.1", host], Refusal::Method),
            (&["get / HTTP/1.1", host], Refusal::Method),
            (&["GET / HTTP/2", host], Refusal::Malformed),
            (&["GET /a b HTTP/1.1", host], Refusal::Malformed),
            (&["GET http://127.0.0.1/ HTTP/1.1", host], Refusal::Malformed),
            (&["GET / HTTP/1.1", host, " folded: x"], Refusal::Malformed),
            (&["GET / HTTP/1.1", host, "nothing"], Refusal::Malformed),
            (&[""], Refusal::Malformed),
        ] {
            assert_eq!(parsed(lines), Err(why), "{lines:?}");
        }
    }
}
