# frozen_string_literal: true

# 1000 threads that mostly sleep, as far as there is time for all of them. What it costs
# is CPU time.

require_relative "../support/sleepers"

WORKLOAD = Bench::Sleepers.start(1000, 40)
