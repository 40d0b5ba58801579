# frozen_string_literal: true

module Rperf
  # Ruby's own counters since the process began, for `rperf stat`.
  module ProcessStats
    # @return [Hash{Symbol => Integer, Float}]
    def self.now
      stat = GC.stat
      {
        gc_count: stat[:count],
        gc_minor: stat[:minor_gc_count],
        gc_major: stat[:major_gc_count],
        gc_time_ms: stat[:time],
        allocated_objects: stat[:total_allocated_objects],
        freed_objects: stat[:total_freed_objects],
        **yjit
      }
    end

    # @return [Hash{Symbol => Integer, Float}] what has been counted since it was `before`
    def self.since(before)
      now.to_h { |name, number| [name, name == :yjit_ratio ? number : number - before.fetch(name, 0)] }
    end

    # YJIT reports the ratio with --yjit-stats only.
    def self.yjit
      return {} unless defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?

      stats = RubyVM::YJIT.runtime_stats
      { yjit_ratio: stats[:ratio_in_yjit], yjit_methods: stats[:compiled_iseq_count] }.compact
    end
    private_class_method :yjit
  end
  private_constant :ProcessStats
end
