//! The same as `bench/harness/tally.py`.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Tally(Mutex<Counts>);

struct Counts {
    file: File,
    wanted: usize,
    sizes: HashMap<String, i64>,
    counts: HashMap<i64, usize>,
}

impl Tally {
    /// Reads the variables that the bench sets.
    pub fn from_environment() -> Result<Self, Box<dyn Error>> {
        let wanted = std::env::var("BENCH_OBJECTS")?.parse()?;
        let path = std::env::var("BENCH_TALLY")?;
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let (sizes, counts) = (HashMap::new(), HashMap::new());
        Ok(Self(Mutex::new(Counts { file, wanted, sizes, counts })))
    }

    /// The object was seen at this size; a second call for the same size does not count.
    pub fn note(&self, name: &str, size: i64) {
        let mut counts = self.0.lock().expect("no holder panics");
        if counts.sizes.get(name) != Some(&size) {
            counts.seen(name, size);
        }
    }

    /// The object was reconciled once more; its size is how often.
    pub fn handled(&self, name: &str) {
        let mut counts = self.0.lock().expect("no holder panics");
        let size = counts.sizes.get(name).copied().unwrap_or(0) + 1;
        counts.seen(name, size);
    }
}

impl Counts {
    fn seen(&mut self, name: &str, size: i64) {
        match self.sizes.get_mut(name) {
            Some(known) => *known = size,
            None => drop(self.sizes.insert(name.to_owned(), size)),
        }
        let count = self.counts.entry(size).or_default();
        *count += 1;
        if *count == 1 || *count == self.wanted {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
            // One write: the bench may read in between.
            let line = format!("{size} {count} {:.6}\n", now.as_secs_f64());
            self.file.write_all(line.as_bytes()).expect("the tally can be written");
        }
    }
}
