# frozen_string_literal: true

# What Rubies are made to load, by a link or by RUBYLIB, where our path can't be in RUBYOPT
# (crates/rperf-session/src/environment.rs): a program's "rperf" may be the original, which has no such file. Any Ruby
# may load it.
require_relative "../rperf"
