//! Decides how lines get out: by a thread of their own, to standard error, in the order in which they came.
//! It exists because a terminal or a pipe that nobody reads must not stop traffic, nor the task that waits for
//! signals.
//! It refuses to wait and to grow: lines that find no room are lost, and counted.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use evenkeel::Engine;
use parking_lot::{Condvar, Mutex};

use super::line::{Level, Line};

/// How many lines of the gateway's own log wait at most.
const WAITING_MAX: usize = 1024;

/// Where lines go. Clones share it; the thread that writes starts with the first line and ends with the last clone.
#[derive(Clone, Debug)]
pub struct Log(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    engine: Engine,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// The most lines that wait to be written; more are lost.
    waiting_max: usize,
    /// There is something to write, or nothing ever again.
    more: Condvar,
    /// Everything has been written.
    idle: Condvar,
    lost: AtomicU64,
}

struct Queue {
    waiting: VecDeque<String>,
    /// Until the thread has it.
    sink: Option<Box<dyn Write + Send>>,
    /// The thread is writing what it took.
    writing: bool,
    closed: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl Log {
    /// Makes a log that is written to standard error.
    #[must_use]
    pub fn to_stderr(engine: &Engine) -> Self {
        Self::to(engine, io::stderr(), WAITING_MAX)
    }

    /// Makes a log that is written to `sink`, and for which at most `waiting_max` lines wait.
    pub(super) fn to(engine: &Engine, sink: impl Write + Send + 'static, waiting_max: usize) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            sink: Some(Box::new(sink)),
            writing: false,
            closed: false,
        };
        Self(Arc::new(Handle {
            engine: engine.clone(),
            shared: Arc::new(Shared {
                queue: Mutex::new(queue),
                waiting_max,
                more: Condvar::new(),
                idle: Condvar::new(),
                lost: AtomicU64::new(0),
            }),
        }))
    }

    /// Notes something that happens now.
    pub fn note(&self, level: Level, event: &'static str, fields: &[(&'static str, &str)]) {
        self.line(&Line {
            at: self.0.engine.now().wall,
            level,
            event,
            fields: fields
                .iter()
                .map(|(key, value)| (*key, (*value).to_owned()))
                .collect(),
        });
    }

    /// Hands a line to the thread that writes, without waiting for it.
    pub fn line(&self, line: &Line) {
        self.text(line.to_text());
    }

    /// Hands a line that is written already to the thread that writes, without waiting for it.
    pub(super) fn text(&self, text: String) {
        let shared = &self.0.shared;
        let mut queue = shared.queue.lock();
        if queue.waiting.len() >= shared.waiting_max {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.waiting.push_back(text);
        if let Some(sink) = queue.sink.take() {
            let writing = Arc::clone(shared);
            let started = thread::Builder::new()
                .name("log".to_owned())
                .spawn(move || writing.write_on(sink));
            // Without a thread lines are lost once no more can wait; that is counted like every loss.
            drop(started);
        }
        shared.more.notify_one();
    }

    /// Returns how many lines were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.shared.lost.load(Ordering::Relaxed)
    }

    /// Waits until every line so far is written, for as long as `at_most`. For the end of the process.
    pub fn flush(&self, at_most: Duration) {
        let mut queue = self.0.shared.queue.lock();
        let is_busy = |queue: &mut Queue| queue.writing || !queue.waiting.is_empty();
        self.0.shared.idle.wait_while_for(&mut queue, is_busy, at_most);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.more.notify_one();
    }
}

impl Shared {
    /// Writes whatever comes, until nothing can come any more.
    fn write_on(&self, mut sink: Box<dyn Write + Send>) {
        loop {
            let lines = {
                let mut queue = self.queue.lock();
                queue.writing = false;
                self.idle.notify_all();
                while queue.waiting.is_empty() {
                    if queue.closed {
                        return;
                    }
                    self.more.wait(&mut queue);
                }
                queue.writing = true;
                std::mem::take(&mut queue.waiting)
            };
            for line in lines {
                if sink.write_all(line.as_bytes()).is_err() {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            // What fails here has been counted by nobody, and nobody knows how many lines it was.
            if sink.flush().is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A reader who lets one write pass for each word he is given.
    struct Slow(mpsc::Receiver<()>, mpsc::Sender<String>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.1.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_does_not_read_holds_up_nobody_and_what_is_lost_is_counted() {
        let ((go, gone), (wrote, written)) = (mpsc::channel(), mpsc::channel());
        let log = Log::to(&Engine::system(), Slow(gone, wrote), WAITING_MAX);
        let all = 2 * WAITING_MAX + 10;
        for number in 0..all {
            log.note(Level::Info, "x", &[("number", &number.to_string())]);
        }
        // The writer has taken any number of them before it stood still.
        let lost = log.lost();
        assert!((10..=all as u64 - WAITING_MAX as u64).contains(&lost), "{lost}");
        log.flush(Duration::ZERO);
        for _ in 0..all as u64 - lost {
            go.send(()).unwrap();
        }
        let first = written.recv().unwrap();
        assert!(first.ends_with(" level=info event=x number=0\n"), "{first}");
        log.flush(Duration::from_secs(20));
        assert_eq!(written.try_iter().count() as u64, all as u64 - lost - 1);
        assert_eq!(log.lost(), lost);
    }

    #[test]
    fn lines_that_cannot_be_written_are_lost_and_counted() {
        let ((go, gone), (wrote, written)) = (mpsc::channel(), mpsc::channel());
        drop((go, written));
        let log = Log::to(&Engine::system(), Slow(gone, wrote), WAITING_MAX);
        log.note(Level::Info, "x", &[]);
        log.flush(Duration::from_secs(20));
        assert_eq!(log.lost(), 1);
    }
}
