# frozen_string_literal: true

# 100 threads that mostly sleep. How long it takes is a matter of the sleeps; what it
# costs is CPU time.

require_relative "../support/sleepers"

WORKLOAD = Bench::Sleepers.start(100, 300)
