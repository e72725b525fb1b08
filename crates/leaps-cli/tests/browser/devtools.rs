//! A browser without a window, driven over its debugging pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};

/// So long an answer may take before the browser counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser and one page in it.
pub struct Browser {
    child: Child,
    into: File,
    out: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    /// Everything it has said without being asked.
    events: Vec<Value>,
    _scratch: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Start the browser that `LEAPS_CHROMIUM` names.
    pub fn start() -> Self {
        let named = std::env::var_os("LEAPS_CHROMIUM").expect("LEAPS_CHROMIUM names a browser");
        let program = PathBuf::from(&named);
        let scratch = tempfile::tempdir().unwrap();
        let [into, out] = ["into", "out"].map(|name| scratch.path().join(name));
        let made = Command::new("mkfifo").args([&into, &out]).status().expect("mkfifo");
        assert!(made.success(), "no pipes");
        // The browser reads its orders from descriptor 3 and answers to 4.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$INTO\" 4>\"$OUT\""])
            .arg(&program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args([
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", scratch.path().join("profile").display()))
            .env("INTO", &into)
            .env("OUT", &out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let into = File::options().write(true).open(into).unwrap();
        let from = File::open(out).unwrap();
        let (send, out) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON from the browser");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, events) = (None, Vec::new());
        let mut browser =
            Browser { child, into, out, session, calls: 0, events, _scratch: scratch };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn next(&mut self) -> Value {
        self.out.recv_timeout(PATIENCE).expect("the browser answers")
    }

    /// Call a method and wait for its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.into.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let mut answer = self.next();
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Open a page on a screen of a size, in the light or in the dark, and wait until it is there.
    pub fn open(&mut self, page: &Path, size: (u32, u32), scheme: &str) {
        self.open_address(&format!("file://{}", page.display()), size, scheme);
    }

    /// The same for a page that is served.
    pub fn open_address(&mut self, address: &str, (width, height): (u32, u32), scheme: &str) {
        self.events.clear();
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", screen);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", scheme);
        self.call("Page.navigate", json!({"url": address}));
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// The value that an expression promises, once it is there.
    pub fn promised(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// What the page complained of, and what it asked for beside itself.
    pub fn complaints(&self, page: &Path) -> Vec<String> {
        let own = format!("file://{}", page.display());
        self.complaints_beside(|address| address == own)
    }

    /// What the page complained of, and what it asked for that is not its own.
    pub fn complaints_beside(&self, own: impl Fn(&str) -> bool) -> Vec<String> {
        let complaint = |event: &Value| {
            let method = event["method"].as_str()?;
            let wrong = match method {
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => true,
                "Network.requestWillBeSent" => {
                    !event["params"]["request"]["url"].as_str().is_some_and(&own)
                }
                _ => false,
            };
            wrong.then(|| event.to_string())
        };
        self.events.iter().filter_map(complaint).collect()
    }

    /// A picture of the whole page, as a PNG file.
    pub fn picture(&mut self, file: &Path) -> Vec<u8> {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let clip =
            json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let asked = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", asked);
        let data = answer["data"].as_str().expect("a picture");
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
        std::fs::write(file, &bytes).unwrap();
        bytes
    }
}
