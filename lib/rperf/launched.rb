# frozen_string_literal: true

# What Rubies are made to load where our path can't be in RUBYOPT (crates/rperf-session/src/environment.rs), by a link or
# by RUBYLIB: a program's "rperf" may be the original, which has no such file. Any Ruby may load it.
require_relative "../rperf"
