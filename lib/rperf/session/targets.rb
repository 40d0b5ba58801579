# frozen_string_literal: true

require_relative "../errors"
require_relative "target"

module Rperf
  # The methods whose calls a session counts, and no others. Each has a TracePoint of its own, for which the VM rewrites
  # the code of this method alone. Methods that are defined later get theirs when the body of their class ends; those at
  # the top level of a file, before it runs; all others at the next snapshot.
  class Targets
    ZJIT = "only: is not possible under ZJIT, which would not compile the methods again"
    private_constant :ZJIT

    class << self
      # @param names [String, nil] with commas between them
      # @return [Targets, nil] those of a new session
      # @raise [Rperf::Error] if one can't be counted
      def of(names) = names && new(names.split(","))

      def compiler?(name) = RubyVM.const_defined?(name) && RubyVM.const_get(name).enabled?

      # A forked child has inherited those of its parent.
      def release = @current&.finish

      attr_accessor :current
    end

    def initialize(names)
      @targets = names.uniq.map { |name| Target.new(name) }
      obstacle = @targets.filter_map(&:obstacle).first
      raise Error, obstacle if obstacle
      raise Error, ZJIT if Targets.compiler?(:ZJIT)

      @points = {}
    end

    # From here on calls are counted.
    def begin
      Targets.current = self
      update(@targets)
      events = @targets.any?(&:top_level?) ? %i[end script_compiled] : [:end]
      @watch = TracePoint.new(*events) { |point| watch(point) }
      @watch.enable
    end

    # Methods of these targets may have come, or be others now.
    def update(targets = @targets)
      # An interrupt would leave half of it.
      Thread.handle_interrupt(Object => :never) do
        targets.each { |target| update_points(target, target.methods, keep: target.top_level?) }
        Native.note_targets(@targets.filter_map(&:note))
      end
    end

    # From here on calls are not counted, and compilers take the methods' code again.
    def finish
      @watch&.disable
      @points.each_value { |point| disable(point) }
      @points.clear
      Targets.current = nil
      heal
    end

    private

    # Runs inside of the program's own code: it must not fail.
    def watch(point)
      if point.event == :end
        name = Target.name_of(point.self)
        ended = @targets.select { |target| target.class_name == name }
        update(ended) unless ended.empty?
      else
        code = point.instruction_sequence
        @targets.select(&:top_level?).each { |target| update_points(target, target.methods_in(code), keep: true) }
      end
    rescue StandardError => e
      Native.note_targets(["methods that were defined later may be missing: #{e.class}"])
    end

    def update_points(target, methods, keep: false)
      found = methods.to_h { |method| [Target.key_of(method), method] }
      gone = keep ? [] : target.keys - found.keys
      gone.each { |key| drop(key) unless @targets.any? { |it| !it.equal?(target) && it.keys.include?(key) } }
      found.each { |key, method| @points[key] ||= enable(method) }
      target.keys = keep ? target.keys | found.keys : found.keys
    end

    def enable(method)
      point = Native.call_point
      point.enable(target: method)
      point
    end

    def drop(key)
      point = @points.delete(key)
      disable(point) if point
    end

    def disable(point) = (point.disable if point.enabled?)

    # Under YJIT, a method that was called meanwhile has passed the number of calls at which it is compiled, and would
    # stay as it is. When any method gets and loses a hook, YJIT begins anew with all.
    def heal
      return unless Targets.compiler?(:YJIT)

      point = TracePoint.new(:call) { nil }
      point.enable(target: method(:heal))
      point.disable
    end
  end
  private_constant :Targets
end
