# frozen_string_literal: true

# Runs the specs: see bin/support/specs.rb.
module Specs
  ROOT = File.expand_path("../../..", __dir__)
  # What each process writes.
  DIRECTORY = File.join(ROOT, "tmp/specs")
  # Held by the run that writes all of these.
  LOCK = File.join(ROOT, "tmp/specs.lock")
  # A line for each example: its status, file, description and seconds.
  RESULTS = File.join(ROOT, "tmp/results.tsv")
  # How long each file took when it ran last.
  TIMES = File.join(ROOT, "tmp/spec-times.json")
end
