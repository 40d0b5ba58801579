# frozen_string_literal: true

module Rperf
  # The methods whose calls a session counts. Each has a TracePoint of its own, for which the VM rewrites
  # the code of this method alone. Methods that are defined later get theirs when the body of their class ends; those at
  # the top level of a file, before it runs; all others at the next snapshot.
  class TargetPoints
    ZJIT = "only: is not possible under ZJIT, which would not compile the methods again"
    # Methods at most: under YJIT, each takes about 1 ms at the begin.
    LIMIT = 1000
    private_constant :ZJIT, :LIMIT

    def initialize(names)
      @targets = names.uniq.map { |name| (Target.name?(name) ? Target : TargetFiles).new(name) }
      obstacle = @targets.filter_map(&:obstacle).first
      raise Error, obstacle if obstacle
      raise Error, ZJIT if compiler?(:ZJIT)

      @refused = {}
      # Another thread may look for the same method just then.
      @points = Hash.new { |points, key| points[key] = Native.call_point }
    end

    # From here on calls are counted.
    def begin
      update(@targets)
      events = @targets.any?(&:compiled?) ? %i[end script_compiled] : [:end]
      @watch = TracePoint.new(*events) { |point| uninterrupted { watch(point) } }
      @watch.enable
    end

    # Methods of these targets may have come, or be others now.
    def update(targets = @targets)
      uninterrupted do
        targets.each { |target| update_points(target, target.methods, keep: target.compiled?) }
        note
      end
    end

    # From here on calls are not counted, and compilers take the methods' code again.
    def finish
      @is_over = true
      @watch&.disable
      points = @points.dup
      @points.clear
      points.each_value { |point| disable(point) }
      heal
    end

    private

    def compiler?(name) = RubyVM.const_defined?(name) && RubyVM.const_get(name).enabled?

    # An interrupt would leave half of it, or be taken for an error of its own.
    def uninterrupted(&) = Thread.handle_interrupt(Object => :never, &)

    # Runs inside of the program's own code: it must not fail.
    def watch(point)
      point.event == :end ? after_body(point.self) : before_file(point.instruction_sequence)
    rescue StandardError => e
      @failure = "methods that were defined later may be missing: #{e.class}"
      Native.note_targets([@failure], [], [], [])
    end

    def after_body(scope)
      name = Target.name_of(scope)
      add { |target| target.methods_after(name, scope) }
    end

    def before_file(code)
      add { |target| target.methods_in(code) if target.compiled? }
    end

    # The block returns a target's methods, or nil if there is nothing new.
    def add
      found = @targets.filter_map do |target|
        methods = yield(target)
        update_points(target, methods, keep: target.compiled?) if methods
      end
      note unless found.empty?
    end

    def note
      found, others = @targets.partition(&:found?)
      lines = [*@failure, *limit_note, *@targets.filter_map(&:note)]
      untraceable = found.select(&:untraceable?)
      Native.note_targets(lines, found.map(&:name), others.map(&:name), untraceable.map(&:name))
    end

    def limit_note
      "calls of #{LIMIT} methods are counted; those of #{@refused.size} more are not" unless @refused.empty?
    end

    def update_points(target, methods, keep: false)
      found = methods.to_h { |method| [Target.key_of(method), method] }
      gone = keep ? [] : target.keys.keys - found.keys
      gone.each do |key|
        target.keys.delete(key)
        drop(key) unless @targets.any? { |it| it.keys.key?(key) }
      end
      found.each do |key, method|
        next @refused[key] = true if @points.size >= LIMIT && !@points.key?(key)

        enable(@points[key], method)
        target.keys[key] = true
      end
    end

    def enable(point, method)
      begin
        point.enable(target: method) unless point.enabled?
      rescue ArgumentError
        raise unless point.enabled? # Another thread has been faster.
      end
      # Another thread has ended the session, and may not have seen the point.
      disable(point) if @is_over
    end

    def drop(key)
      point = @points.delete(key)
      disable(point) if point
    end

    def disable(point) = (point.disable if point.enabled?)

    # Under YJIT, a method that was called meanwhile has passed the number of calls at which it is compiled, and would
    # stay as it is. When any method gets and loses a hook, YJIT begins anew with all.
    def heal
      return unless compiler?(:YJIT)

      point = TracePoint.new(:call) { nil }
      point.enable(target: method(:heal))
      point.disable
    end
  end
  private_constant :TargetPoints
end
