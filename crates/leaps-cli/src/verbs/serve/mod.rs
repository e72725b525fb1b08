//! `leaps serve`: the report of a run for browsers on this machine, renewed by server-sent events while the run goes on.

mod http;
mod live;
mod page;

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::app::Context;
use crate::error::usage;
use crate::output;
use http::{Refusal, Request};
use live::{Live, Renderer};

/// Flags of `serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Run directory; while it is trained on a smaller lattice first, that part is shown
    #[arg(value_name = "DIR")]
    run: PathBuf,
    /// Port on this machine; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 8080, value_parser = port)]
    port: u16,
}

fn port(word: &str) -> std::result::Result<u16, String> {
    word.parse().map_err(|_| "a whole number from 0 to 65535".to_owned())
}

/// Connections that are answered at a time, and those among them that wait for events.
const MOST_CONNECTIONS: usize = 32;
const MOST_LISTENERS: usize = 16;
/// How often the end of the program is looked for.
const BLINK: Duration = Duration::from_millis(50);
/// A word now and then keeps connections open, and finds those that are gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long a client may take to read.
const WRITE: Duration = Duration::from_secs(5);

const SCRIPT: &str = include_str!("live.js");

/// Serve until Ctrl-C.
pub fn run(args: &ServeArgs, context: &Context) -> Result<()> {
    if context.globals.json {
        return Err(usage("--json: must be left out; 'leaps status DIR --json' has the numbers"));
    }
    let mut renderer = Renderer::new(&args.run, context)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let port = args.port;
        match error.kind() {
            ErrorKind::AddrInUse => {
                usage(format!("--port = {port}: is in use; '--port 0' takes one that is free"))
            }
            ErrorKind::PermissionDenied => {
                usage(format!("--port = {port}: is not for ordinary users; take one above 1023"))
            }
            _ => anyhow::Error::new(error).context(format!("port {port}")),
        }
    })?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let signals = context.catch_stops();
    let server =
        Server { live: Live::default(), context, open: [const { AtomicUsize::new(0) }; 2] };
    output::data(&format!("http://127.0.0.1:{port}/"))?;
    context.say(format!(
        "from another machine: ssh -L {port}:127.0.0.1:{port} HOST, and the same address there"
    ));
    context.say("Ctrl-C ends it; the run itself is not touched");
    renderer.look(&server.live);
    std::thread::scope(|scope| {
        scope.spawn(|| renderer.go_on(&server.live));
        while !signals.caught() {
            match listener.accept() {
                Ok((stream, _)) => server.take(stream, scope),
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(BLINK),
                // One that was given up while it waited, or no room for more: the next may fare better.
                Err(_) => std::thread::sleep(BLINK),
            }
        }
    });
    Err(signals.failure(format!("stopped by {}", signals.name())))
}

/// What connections are answered with.
struct Server<'c> {
    live: Live,
    context: &'c Context,
    /// Connections that are answered, and those among them that wait for events.
    open: [AtomicUsize; 2],
}

/// A place among a number of them, given back in the end.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let place = Place(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server<'_> {
    /// Answer a connection in a thread of its own, if there are not too many.
    fn take<'s>(&'s self, mut stream: TcpStream, scope: &'s std::thread::Scope<'s, '_>) {
        // On some systems it has this from the listener.
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_write_timeout(Some(WRITE));
        let Some(place) = Place::take(&self.open[0], MOST_CONNECTIONS) else {
            let _ = stream.set_read_timeout(Some(BLINK));
            let _ = http::refuse(&mut stream, Refusal::Busy);
            return;
        };
        let answer = move || {
            // A client that goes away is no error.
            let _ = self.answer(stream);
            drop(place);
        };
        // Where there is no thread for it, the connection is closed.
        let _ = std::thread::Builder::new().spawn_scoped(scope, answer);
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let stopped = || self.context.is_stopped();
        let request = match Request::read(&mut stream, &stopped) {
            None => return Ok(()),
            Some(Err(why)) => return http::refuse(&mut stream, why),
            Some(Ok(request)) => request,
        };
        let now = self.live.now();
        let html = "text/html; charset=utf-8";
        match request.path.as_str() {
            "/" => {
                let page = now.page.html(now.version, now.words());
                http::answer(&mut stream, html, &now.page.policy, &page)
            }
            "/part" => http::answer(&mut stream, html, http::NOTHING, &now.page.part),
            "/status" => {
                let status = now.status.to_string();
                http::answer(&mut stream, "application/json", http::NOTHING, &status)
            }
            "/live.js" => {
                let kind = "text/javascript; charset=utf-8";
                http::answer(&mut stream, kind, http::NOTHING, SCRIPT)
            }
            "/events" => match Place::take(&self.open[1], MOST_LISTENERS) {
                Some(_place) => self.events(&mut stream, &request.query),
                None => http::refuse(&mut stream, Refusal::Busy),
            },
            _ => http::refuse(&mut stream, Refusal::NotFound),
        }
    }

    /// Say what changes, until the client or the program ends. A client has a page already, whose version it names.
    fn events(&self, stream: &mut TcpStream, query: &str) -> io::Result<()> {
        http::begin_events(stream)?;
        let mut has = query.strip_prefix("page=").and_then(|version| version.parse().ok());
        let (mut now, mut said, mut last) = (self.live.now(), None, Instant::now());
        while !self.context.is_stopped() {
            let mut text = String::new();
            if said.as_ref() != Some(&now.status) {
                text += &format!("event: status\ndata: {}\n\n", now.status);
                said = Some(now.status.clone());
            }
            if has != Some(now.version) {
                text += &format!("event: page\ndata: {}\n\n", now.version);
                has = Some(now.version);
            }
            if text.is_empty() && last.elapsed() >= SIGN_OF_LIFE {
                text += ":\n\n";
            }
            if !text.is_empty() {
                stream.write_all(text.as_bytes())?;
                last = Instant::now();
            }
            now = self.live.after(&now, Duration::from_millis(250));
        }
        Ok(())
    }
}
