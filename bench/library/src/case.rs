//! Decides the form in which a subject is handed over: a name, and a loop that makes so many calls.
//! It exists so that a synchronous breaker and an asynchronous stack are measured by the same hand.
//! It refuses to time anything itself.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::runtime::{Builder, Runtime};

use crate::cpu;

type Run = Box<dyn Fn(usize, u64) + Send + Sync>;

/// Something to measure.
pub struct Case {
    /// Its name in the table; no two are the same.
    pub name: &'static str,
    run: Run,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

impl Case {
    /// Names a loop: `run(thread, calls)` makes that many calls as that thread, counted from zero.
    pub fn new(name: &'static str, run: impl Fn(usize, u64) + Send + Sync + 'static) -> Self {
        let run = Box::new(run);
        Self { name, run }
    }

    pub(crate) fn run(&self, thread: usize, calls: u64) {
        (self.run)(thread, calls);
    }
}

/// Runs a loop of asynchronous calls on the calling thread, under a runtime of its own.
///
/// # Panics
/// When the system has no resources for a runtime.
pub fn block_on<F: Future>(calls: F) -> F::Output {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime needs a few file descriptors")
        .block_on(calls)
}

/// A runtime with two workers, one on each CPU, for many tasks that share one subject.
#[derive(Clone, Debug)]
pub struct Tasks(Arc<Runtime>);

impl Tasks {
    /// How many tasks share the calls.
    pub const COUNT: u64 = 64;

    /// Starts the workers.
    ///
    /// # Errors
    /// When the system has no resources for them.
    pub fn start() -> std::io::Result<Self> {
        let started = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .on_thread_start(move || cpu::pin(started.fetch_add(1, Ordering::Relaxed) % 2))
            .build()?;
        Ok(Self(Arc::new(runtime)))
    }

    /// Makes `calls` calls, spread over [`Tasks::COUNT`] tasks, and waits for all of them.
    ///
    /// # Panics
    /// When a task does.
    pub fn run<F>(&self, calls: u64, task: impl Fn(u64) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.0.block_on(async {
            let share = calls.div_ceil(Self::COUNT);
            let tasks: Vec<_> = (0..Self::COUNT).map(|_| tokio::spawn(task(share))).collect();
            for task in tasks {
                task.await.expect("a measured call does not panic");
            }
        });
    }

    /// Lets other tasks run after every sixteenth call, as waiting for a socket would.
    pub async fn pause(call: u64) {
        if call.is_multiple_of(16) {
            tokio::task::yield_now().await;
        }
    }
}
