//! The page that is served: the report of a run, with a line of numbers above it and a script that renews both.

use leaps_report::draw::escape;

/// A report as it is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// What is around the contents, from the start of the page on.
    before: String,
    /// The contents, which are exchanged when they change.
    pub part: String,
    after: String,
    /// What the page may do.
    pub policy: String,
}

/// The policy of a report without one: it has a style of its own.
const USUAL: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

impl Served {
    /// Take a report apart.
    pub fn of(report: &str) -> Self {
        let (report, own) = without_policy(report);
        let (head, body) = report.split_once("<body>").unwrap_or(("", &report));
        let (body, end) = body.rsplit_once("</body>").unwrap_or((body, ""));
        let within = body.split_once("<main>").and_then(|(before, rest)| {
            let (part, after) = rest.rsplit_once("</main>")?;
            Some((before, part, after))
        });
        let (before, part, after) = within.unwrap_or(("", body, ""));
        Served {
            before: format!("{head}<body>{before}"),
            part: part.to_owned(),
            after: format!("{after}<script src=\"live.js\"></script>\n</body>{end}"),
            policy: policy(own.as_deref().unwrap_or(USUAL)),
        }
    }

    /// The whole page, its contents being those of this version.
    pub fn html(&self, version: u64, words: &str) -> String {
        let Served { before, part, after, .. } = self;
        let words = escape(words);
        format!(
            "{before}\n<p id=\"live\" class=\"lead\" data-page=\"{version}\">{words}</p>\n<main>{part}</main>\n{after}"
        )
    }
}

/// A page without the policy in its head, and that.
fn without_policy(page: &str) -> (String, Option<String>) {
    let start = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
    let found = page.split_once(start).and_then(|(before, rest)| {
        let (policy, after) = rest.split_once("\">")?;
        Some((format!("{before}{after}"), policy.to_owned()))
    });
    found.map_or_else(|| (page.to_owned(), None), |(page, policy)| (page, Some(policy)))
}

/// The same and what renewing takes: our script, and asking this server.
fn policy(report: &str) -> String {
    let (mut out, mut scripts) = (Vec::new(), false);
    for rule in report.split(';').map(str::trim).filter(|rule| !rule.is_empty()) {
        match rule.strip_prefix("script-src ") {
            Some(rest) => {
                scripts = true;
                out.push(format!("script-src 'self' {rest}"));
            }
            None => out.push(rule.to_owned()),
        }
    }
    if !scripts {
        out.push("script-src 'self'".to_owned());
    }
    out.push("connect-src 'self'; frame-ancestors 'none'".to_owned());
    out.join("; ")
}

/// A report of a run that there is nothing to tell about yet.
pub fn nothing_yet(title: &str, why: &str) -> String {
    let (title, why) = (escape(title), escape(why));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n</head>\n\
         <body>\n<main><h1>{title}</h1>\n<p>{why}</p>\n</main>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_taken_apart_and_put_together() {
        let report = "<html><head><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-a='\">\
             <style>x</style></head><body><main><h1>T</h1></main><script>s</script></body></html>";
        let served = Served::of(report);
        assert_eq!(served.part, "<h1>T</h1>");
        assert_eq!(
            served.policy,
            "default-src 'none'; script-src 'self' 'sha256-a='; connect-src 'self'; frame-ancestors 'none'"
        );
        let page = served.html(3, "step <1>");
        for words in
            ["data-page=\"3\">step &lt;1&gt;</p>", "<main><h1>T</h1></main>", "<script>s</script>"]
        {
            assert!(page.contains(words), "no {words} in {page}");
        }
        assert!(page.ends_with("<script src=\"live.js\"></script>\n</body></html>"), "{page}");
        assert!(!page.contains("http-equiv"), "{page}");
        // One without the element of contents, or a policy.
        let plain = Served::of("<html><body><h1>T</h1></body></html>");
        assert_eq!(plain.part, "<h1>T</h1>");
        assert!(plain.policy.contains("script-src 'self';"), "{}", plain.policy);
    }
}
