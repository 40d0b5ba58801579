# frozen_string_literal: true

module Rperf
  class Viewer
    # The session of which snapshots are taken.
    module RunningSession
      # @return [Session, nil] nil also where nothing can be profiled: there is no such class then
      def self.get = (Session.running if Rperf.running?)
    end
    private_constant :RunningSession
  end
end
