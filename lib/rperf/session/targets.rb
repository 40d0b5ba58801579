# frozen_string_literal: true

require_relative "../builtin"
require_relative "../deferred"
require_relative "../errors"
require_relative "../wrapped"

module Rperf
  # The methods whose calls the running session counts, and no others (`only:`).
  module Targets
    CODE = Deferred.new(__dir__, "target", "target_files", "target_points")
    private_constant :CODE

    class << self
      # @param names [String, nil] with commas between them
      # @return [TargetPoints, nil] those of a new session
      # @raise [Rperf::Error] if one can't be counted
      def of(names)
        return unless names

        CODE.load
        TargetPoints.new(names.split(","))
      end

      # From here on their calls are counted.
      # @param points [TargetPoints]
      def begin(points)
        @current = points
        points.begin
      end

      # Methods may have come, or be others now.
      def update = @current&.update

      # Calls are not counted any more. A forked child has inherited the targets of its parent.
      def release
        points = @current or return
        @current = nil
        points.finish
      end
    end
  end
  private_constant :Targets
end
