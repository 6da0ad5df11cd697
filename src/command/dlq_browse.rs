//! `mq dlq browse`: the terminal, the broker and the browser between them.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where it shows whether keys come from a terminal"
)]

mod ask;
mod job;
mod keys;
mod matching;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::session::Session;
use super::signals;
use crate::browse::{Browser, Effect, Event, Start, draw};
use crate::cli::BrowseArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, Screen};
use matching::Matcher;

/// How often it is looked how far a job is, and what was said.
const TICK: Duration = Duration::from_millis(200);

/// As SIGINT, for who asks a job to stop with a key.
const INTERRUPT: u8 = 2;

/// So long a stop may take to arrive.
const STOPPED_WITHIN: Duration = Duration::from_millis(500);

pub(super) async fn run(
    args: BrowseArgs,
    term: Option<String>,
    mut session: Session,
) -> anyhow::Result<Exit> {
    must_be_a_terminal(term.as_deref())?;
    session.shows_progress = false;
    let vhost = session.vhost()?.clone();
    let queue = args.queue.map(|queue| (vhost.to_string(), queue));
    // What cannot work at all is told before the terminal changes.
    session.management()?.facts().await?;
    let mut signals = signals::listen()?;
    let (send, mut events) = unbounded_channel();
    let mut screen = Screen::open()?;
    keys::read(send.clone())?;
    let (browser, effects) = Browser::new(Start {
        size: Screen::size(),
        with_vhost: args.all_vhosts,
        queue,
    });
    let mut shell = Shell {
        session: Arc::new(session),
        all_vhosts: args.all_vhosts,
        limit: args.limit,
        browser,
        matcher: Matcher::start(send.clone()),
        send,
        hands: Arc::default(),
        newest: Arc::default(),
        stop: None,
        looked: Arc::default(),
        quits: false,
        last_words: None,
    };
    let left = shell
        .work(&mut screen, effects, &mut events, &mut signals)
        .await;
    drop(screen);
    if let Some(words) = shell.last_words {
        output::talk(&words);
    }
    left?;
    Ok(Exit::Done)
}

fn must_be_a_terminal(term: Option<&str>) -> Result<()> {
    let why = if !std::io::stdin().is_terminal() {
        "standard input is no terminal"
    } else if output::can_show_a_screen(term) {
        return Ok(());
    } else if output::data_is_on_terminal() {
        "TERM is not set, or dumb: the terminal can show no screen"
    } else {
        "standard output is no terminal"
    };
    Err(Error::new(
        ErrorKind::Usage,
        format!("mq dlq browse needs a terminal: {why}"),
    )
    .hint("mq dlq list and mq dlq inspect QUEUE show the same as text or JSON"))
}

struct Shell {
    session: Arc<Session>,
    all_vhosts: bool,
    limit: u32,
    browser: Browser,
    matcher: Matcher,
    send: UnboundedSender<Event>,
    /// Who takes messages and puts them back: two at once would not see those of
    /// each other.
    hands: Arc<Mutex<()>>,
    /// The number of the newest load.
    newest: Arc<AtomicU64>,
    /// Ends the job that runs.
    stop: Option<UnboundedSender<u8>>,
    looked: Arc<AtomicU64>,
    /// Whether to leave as soon as no job runs.
    quits: bool,
    /// The report of a job that nobody was there to read.
    last_words: Option<String>,
}

impl Shell {
    async fn work(
        &mut self,
        screen: &mut Screen,
        effects: Vec<Effect>,
        events: &mut UnboundedReceiver<Event>,
        signals: &mut UnboundedReceiver<u8>,
    ) -> Result<()> {
        self.carry_out(effects, screen).await?;
        let mut ticks = tokio::time::interval(TICK);
        let mut lost = None;
        loop {
            if lost.is_none()
                && let Err(error) = screen.draw(|area, buffer| draw(&self.browser, area, buffer))
            {
                // Nobody sees anything any more: a job ends in order first.
                lost = Some(error);
                self.leave(1);
            }
            if self.quits && self.stop.is_none() {
                return lost.map_or(Ok(()), Err);
            }
            tokio::select! {
                biased;
                signal = signals.recv() => self.leave(signal.unwrap_or(INTERRUPT)),
                event = events.recv() => {
                    let mut event = event;
                    // All that is here before it is drawn.
                    while let Some(one) = event {
                        self.happened(one, screen).await?;
                        event = events.try_recv().ok();
                    }
                }
                _ = ticks.tick() => self.tick(screen),
            }
        }
    }

    async fn happened(&mut self, event: Event, screen: &mut Screen) -> Result<()> {
        if self.quits && self.stop.is_none() {
            return Ok(());
        }
        let event = match event {
            Event::Finished(mut outcome) => {
                self.stop = None;
                for line in screen.said() {
                    outcome.text.push('\n');
                    outcome.text.push_str(&line);
                }
                if self.quits {
                    let trouble = outcome.trouble.as_ref().map(|it| format!("\n{}", it.text));
                    let words = format!("{}{}", outcome.text, trouble.unwrap_or_default());
                    self.last_words = Some(words);
                }
                Event::Finished(outcome)
            }
            event => event,
        };
        let effects = self.browser.update(event);
        self.carry_out(effects, screen).await
    }

    fn tick(&mut self, screen: &Screen) {
        if self.browser.runs_a_job() {
            let looked = self.looked.load(Ordering::Relaxed);
            self.browser.update(Event::Progress(looked));
            return;
        }
        let said = screen.said();
        if !said.is_empty() {
            self.browser.update(Event::Said(said));
        }
    }

    /// Leaves, once the job that runs has ended by this signal.
    fn leave(&mut self, signal: u8) {
        self.quits = true;
        if let Some(stop) = &self.stop {
            let _ = stop.send(signal);
        }
    }

    async fn carry_out(&mut self, effects: Vec<Effect>, screen: &mut Screen) -> Result<()> {
        for effect in effects {
            match effect {
                Effect::List => {
                    let (session, send) = (Arc::clone(&self.session), self.send.clone());
                    let (all_vhosts, hands) = (self.all_vhosts, Arc::clone(&self.hands));
                    tokio::spawn(async move {
                        let _alone = hands.lock().await;
                        let listed = ask::list(&session, all_vhosts).await;
                        let _ = send.send(Event::Listed(listed.map_err(|it| ask::trouble(&it))));
                    });
                }
                Effect::Load {
                    number,
                    vhost,
                    queue,
                } => {
                    let (session, send) = (Arc::clone(&self.session), self.send.clone());
                    let (limit, hands) = (self.limit, Arc::clone(&self.hands));
                    let newest = Arc::clone(&self.newest);
                    newest.store(number, Ordering::Relaxed);
                    let is_stale = move || newest.load(Ordering::Relaxed) != number;
                    tokio::spawn(async move {
                        let _alone = hands.lock().await;
                        let loaded = ask::load(&session, &vhost, &queue, limit, &is_stale).await;
                        let loaded = loaded.map_err(|it| ask::trouble_of(&vhost, &queue, &it));
                        let _ = send.send(Event::Loaded(number, loaded));
                    });
                }
                Effect::Match {
                    number,
                    program,
                    letters,
                } => self.matcher.ask(number, program, letters),
                Effect::Run(job) => {
                    let (stop, stopped) = unbounded_channel();
                    self.stop = Some(stop);
                    self.looked = Arc::default();
                    let (session, send) = (Arc::clone(&self.session), self.send.clone());
                    let (looked, hands) = (Arc::clone(&self.looked), Arc::clone(&self.hands));
                    let working = tokio::spawn(async move {
                        let _alone = hands.lock().await;
                        job::run(job, &session, stopped, looked).await
                    });
                    tokio::spawn(async move {
                        // Also when it broke down: whoever leaves waits for its end.
                        let outcome = working.await.unwrap_or_else(|error| job::broken(&error));
                        let _ = send.send(Event::Finished(outcome));
                    });
                }
                Effect::Stop => {
                    if let Some(stop) = &self.stop {
                        let _ = stop.send(INTERRUPT);
                    }
                }
                Effect::Redraw => screen.wipe()?,
                Effect::Suspend => {
                    suspend(screen).await?;
                    let (columns, rows) = Screen::size();
                    self.browser.update(Event::Resize(columns, rows));
                }
                Effect::Quit => self.leave(INTERRUPT),
            }
        }
        Ok(())
    }
}

/// Leaves the terminal to the shell until it brings us back.
async fn suspend(screen: &mut Screen) -> Result<()> {
    let Ok(mut continued) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else {
        return Ok(());
    };
    screen.give_back();
    if rustix::process::kill_process(rustix::process::getpid(), Signal::TSTP).is_ok() {
        // Another thread may be the one that is stopped first. Where nobody can
        // bring us back, we are not stopped at all.
        let _ = tokio::time::timeout(STOPPED_WITHIN, continued.recv()).await;
    }
    screen.take()
}
