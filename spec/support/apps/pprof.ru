# frozen_string_literal: true

# An app below the profile endpoint, for those who send the key. It profiles itself if PROFILE names a file.

require "rperf/pprof_endpoint"

Rperf.start(mode: :cpu, frequency: 100, output: ENV.fetch("PROFILE")) if ENV["PROFILE"]
at_exit { Rperf.stop }
use Rperf::PprofEndpoint, auth: ->(env) { env["HTTP_X_KEY"] == "secret" }

run(lambda do |_env|
  limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.5
  nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit
  [200, {}, ["done"]]
end)
