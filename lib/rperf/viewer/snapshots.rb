# frozen_string_literal: true

module Rperf
  class Viewer
    # The last snapshots of this process, within bounds. Any thread.
    class Snapshots
      # A snapshot in the two forms that are served: the page's data, and a pprof file.
      Snapshot = Struct.new(:id, :title, :start_ns, :duration_ns, :samples, :data, :pprof, keyword_init: true) do
        def bytes = data.bytesize + pprof.bytesize

        # As the page wants it: docs/internals/viewer-format.md. What isn't known is left out.
        def facts
          { id:, title:, samples:, bytes:, start_ms: start_ns.zero? ? nil : start_ns / 1_000_000,
            duration_ns: duration_ns.zero? ? nil : duration_ns }.compact
        end
      end

      # How many were dropped to keep within the bounds.
      attr_reader :dropped

      # The bounds.
      attr_reader :max_count, :max_bytes

      def initialize(count:, bytes:)
        @max_count = count
        @max_bytes = bytes
        @kept = {}
        @number = 0
        @dropped = 0
        @lock = Mutex.new
        # Making one takes a while: others can be looked at meanwhile.
        @making = Mutex.new
      end

      # Keeps the profile that the block returns, if any. Interrupts wait: a profile that has been cleared from the
      # session exists nowhere else.
      # @return [String, nil] its id
      def add
        @making.synchronize do
          Thread.handle_interrupt(Object => :never) do
            profile = yield
            profile && keep(profile)
          end
        end
      end

      # @return [Array<Snapshot>] the oldest first
      def list = @lock.synchronize { @kept.values }

      # @return [Snapshot, nil]
      def find(id) = @lock.synchronize { @kept[id] }

      # @return [Snapshot, nil] the one that is gone
      def delete(id) = @lock.synchronize { @kept.delete(id) }

      # @return [String] the page's data: what has changed from one snapshot to another
      def compare(base, target)
        @making.synchronize { NativeProfile.compare_for_viewer(base.pprof, base.title, target.pprof, target.title) }
      end

      private

      # With the process in its id: another one's page may be asked of us.
      def keep(profile)
        number = @number += 1
        title = "snapshot #{number}"
        facts = profile.for_viewer(title).each_value(&:freeze)
        snapshot = Snapshot.new(id: "#{Process.pid}-#{number}", title:, **facts)
        @lock.synchronize do
          @kept[snapshot.id] = snapshot
          drop_oldest
        end
        snapshot.id
      end

      def drop_oldest
        bytes = @kept.each_value.sum(&:bytes)
        until @kept.size == 1 || (@kept.size <= @max_count && bytes <= @max_bytes)
          bytes -= @kept.shift.last.bytes
          @dropped += 1
        end
      end
    end
    private_constant :Snapshots
  end
end
