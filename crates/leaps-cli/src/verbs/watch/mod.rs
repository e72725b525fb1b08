//! `leaps watch`: a training run on the terminal while it goes on, or as it was left.

mod charts;
mod lattice;
mod screen;
pub mod view;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::app::Context;
use crate::error::{Failure, one_line, usage};
use crate::output;
use screen::{Look, Screen};
use view::Watcher;

/// Flags of `watch`.
#[derive(Args, Debug)]
#[command(
    after_help = "Keys: q, Esc or Ctrl-C leaves (the run goes on), l draws the loss on a linear or a logarithmic scale."
)]
pub struct WatchArgs {
    /// Run directory; while it is trained on a smaller lattice first, that part is shown
    #[arg(value_name = "DIR")]
    run: PathBuf,
    /// Print one picture as plain text, and end
    #[arg(long)]
    once: bool,
}

/// How often files are read again.
const EVERY: Duration = Duration::from_secs(1);
/// How long a key may wait.
const BLINK: Duration = Duration::from_millis(100);
/// The picture of `--once` where there is no terminal.
const USUAL: (u16, u16) = (100, 34);

/// Show the run until a key ends it.
pub fn run(args: &WatchArgs, context: &Context) -> Result<()> {
    if context.globals.json {
        return Err(usage("--json: must be left out; 'leaps status DIR --json' has the numbers"));
    }
    let mut watcher = Watcher::new(&args.run)?;
    let view = watcher.look()?;
    if args.once {
        let terminal = std::io::stdout().is_terminal();
        let size = terminal.then(|| ratatui::crossterm::terminal::size().ok()).flatten();
        let (width, height) = size.unwrap_or(USUAL);
        let look = Look { plain: true, ..Look::default() };
        let area = Rect::new(0, 0, width, height);
        return output::data(&text(&Screen { view: &view, look, trouble: None }, area));
    }
    if !std::io::stdout().is_terminal() {
        return Err(usage(
            "standard output: must be a terminal; '--once' prints one picture as plain text",
        ));
    }
    // Also what ends other programs: the terminal is put back first.
    context.catch_stops();
    let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore());
    let left = terminal.context("the terminal").and_then(|mut terminal| {
        Follow { watcher, view, look: Look::of_terminal() }.until_left(&mut terminal, context)
    });
    ratatui::restore();
    left
}

/// A picture as lines of text.
fn text(screen: &Screen<'_>, area: Rect) -> String {
    let mut buffer = Buffer::empty(area);
    screen.render(area, &mut buffer);
    let row = |y: u16| -> String { (0..area.width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..area.height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

/// A run that is looked at.
struct Follow {
    watcher: Watcher,
    view: view::View,
    look: Look,
}

impl Follow {
    fn until_left(mut self, terminal: &mut DefaultTerminal, context: &Context) -> Result<()> {
        let (mut read, mut trouble) = (Instant::now(), None);
        loop {
            if read.elapsed() >= EVERY {
                trouble = match self.watcher.look() {
                    Ok(view) => {
                        self.view = view;
                        None
                    }
                    // It may come back: a directory on a network, a file that is being replaced.
                    Err(error) => Some(one_line(&error)),
                };
                read = Instant::now();
            }
            let screen = Screen { view: &self.view, look: self.look, trouble: trouble.as_deref() };
            terminal.draw(|frame| frame.render_widget(&screen, frame.area()))?;
            if event::poll(BLINK)?
                && let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                match meaning(key) {
                    Some(Wish::Leave) => return Ok(()),
                    Some(Wish::Interrupt) => {
                        let text = "left by Ctrl-C; the run itself is not touched".to_owned();
                        return Err(Failure::Interrupted(text).into());
                    }
                    Some(Wish::Scale) => self.look.linear = !self.look.linear,
                    None => {}
                }
            }
            if context.is_stopped() {
                let signals = context.catch_stops();
                let text = format!("left by {}; the run itself is not touched", signals.name());
                return Err(signals.failure(text));
            }
        }
    }
}

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Leave,
    Interrupt,
    Scale,
}

fn meaning(key: KeyEvent) -> Option<Wish> {
    match key.code {
        // No signal comes of it while the terminal is ours.
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Wish::Interrupt)
        }
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Leave),
        KeyCode::Char('l') => Some(Wish::Scale),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let plain = |c| meaning(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        assert_eq!(plain('q'), Some(Wish::Leave));
        assert_eq!(plain('l'), Some(Wish::Scale));
        assert_eq!(plain('c'), None);
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(meaning(ctrl_c), Some(Wish::Interrupt));
        assert_eq!(meaning(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), Some(Wish::Leave));
    }
}
