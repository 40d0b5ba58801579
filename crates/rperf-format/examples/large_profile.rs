//! Writes a pprof file like that of a large application: the random walk of rperf-model's
//! test support, with labels and eight threads. For `bin/bench report`.
//!
//! `cargo run --release -p rperf-format --example large_profile -- STACKS DEPTH OUTPUT`
//! prints how many bytes the file has without its compression.

#![allow(clippy::print_stdout, reason = "a program prints its result")]

use flate2::read::MultiGzDecoder;
use rperf_format::pprof;
use rperf_model::test_support::RandomWalk;
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};

const THREADS: u32 = 8;
const REQUESTS: u32 = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [stacks, depth, output] = &arguments[..] else {
        return Err("give the number of stacks, their depth and a file to write".into());
    };
    let walk = RandomWalk {
        weights: stacks.parse()?,
        depth: depth.parse()?,
        threads: THREADS,
        requests: REQUESTS,
    };
    pprof::write(&walk.profile(), &mut BufWriter::new(File::create(output)?))?;
    let mut plain = MultiGzDecoder::new(BufReader::new(File::open(output)?));
    println!("{}", io::copy(&mut plain, &mut io::sink())?);
    Ok(())
}
