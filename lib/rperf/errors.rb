# frozen_string_literal: true

module Rperf
  # What goes wrong while profiling: a session that can't start, a file that
  # can't be written or read. Bad arguments are ArgumentError.
  class Error < RuntimeError; end
end
